import type { BackendDetail, ServiceDetail } from '../../protocol.ts'
import { Pointer, row, type Pointing } from './pointing.tsx'

/** The endpoints: eligible, or the reason why not. */
export function Backends({ detail, ...pointing }: Pointing & { readonly detail: ServiceDetail }) {
  const { backends } = detail
  const hasExternal = backends.some(({ external }) => external !== null)
  return (
    <>
      <h2>Backends: where they may end</h2>
      {backends.length === 0 ? (
        <p class="muted">It has no endpoints.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Backends">
          <table>
            <thead>
              <tr>
                <th scope="col">endpoint</th>
                <th scope="col">pod</th>
                <th scope="col">node</th>
                <th scope="col">for pods of this node</th>
                {hasExternal && <th scope="col">for clients outside</th>}
              </tr>
            </thead>
            <tbody>
              {backends.map((backend) => (
                <tr key={backend.id} {...row(pointing, 'backend', backend.id)} data-backend={backend.id}>
                  <th scope="row">
                    <Pointer {...pointing} kind="backend" id={backend.id}>
                      {backend.address}
                    </Pointer>
                  </th>
                  <td class="mono">{backend.pod?.replace(`${detail.namespace}/`, '') ?? '–'}</td>
                  <td>{backend.node === '' ? '–' : backend.node}</td>
                  <td>
                    <Eligible {...backend} />
                  </td>
                  {hasExternal && <td>{backend.external !== null && <Eligible {...backend.external} />}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

function Eligible({ eligible, why, ejected = false }: { eligible: boolean; why: string } & Partial<BackendDetail>) {
  const said = ejected && !why.includes('eject') ? [why, 'ejected'].filter((word) => word !== '').join(', ') : why
  return (
    <span class={eligible ? 'yes' : 'no'}>
      {eligible ? 'eligible' : 'no'}
      {said !== '' && <span class="small">{eligible ? `, ${said}` : `: ${said}`}</span>}
    </span>
  )
}
