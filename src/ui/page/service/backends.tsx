import type { BackendDetail, ServiceDetail } from '../../protocol.ts'
import { Table } from '../parts/table.tsx'
import { Pointer, row, type Pointing } from './pointing.tsx'

/** The endpoints: eligible, or the reason why not. */
export function Backends({ detail, ...pointing }: Pointing & { readonly detail: ServiceDetail }) {
  const { backends } = detail
  const hasExternal = backends.some(({ external }) => external !== null)
  return (
    <>
      <h2>Backends: where connections may end</h2>
      {backends.length === 0 ? (
        <p class="muted">It has no endpoints.</p>
      ) : (
        <Table
          label="Backends"
          heads={['endpoint', 'pod', 'node', 'for pods of this node', ...(hasExternal ? ['for clients outside'] : [])]}
        >
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
        </Table>
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
