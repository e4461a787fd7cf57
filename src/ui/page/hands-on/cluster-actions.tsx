import { count } from '../../../lib/count.ts'
import type { NodeInfo } from '../../protocol.ts'
import { useSnapshot } from '../store.ts'
import { ActButton, type ActProps } from '../act/act-button.tsx'
import { Choice } from './service-actions.tsx'

export function ClusterActions(props: ActProps) {
  const { nodes, apiServer } = useSnapshot()
  return (
    <>
      <section aria-labelledby="nodes">
        <h2 id="nodes">Nodes</h2>
        {nodes.map((node) => (
          <NodeRow key={node.name} node={node} {...props} />
        ))}
      </section>
      <section aria-labelledby="api">
        <h2 id="api">API server</h2>
        <div class="line">
          <span class="row-name">
            {apiServer.state === 'away' ? (
              <b class="bad">nodes cannot reach it</b>
            ) : (
              <>
                <code>{apiServer.url}</code> answers
              </>
            )}
          </span>
          {apiServer.state === 'away' ? (
            <ActButton {...props} action={{ action: 'api-server-back' }}>
              Bring it back
            </ActButton>
          ) : (
            <ActButton {...props} action={{ action: 'api-server-away' }}>
              Take it away
            </ActButton>
          )}
        </div>
      </section>
    </>
  )
}

function NodeRow({ node, ...props }: ActProps & { node: NodeInfo }) {
  const { name, proxy } = node
  return (
    <div class="node-row" data-node={name}>
      <h3>{name}</h3>
      <span class="small">
        {proxy.state === 'ready' ? `proxy ${proxy.pid ?? ''}` : `proxy ${proxy.state}`}
        {proxy.restarts > 0 && `, ${count(proxy.restarts, 'restart')}`}
      </span>
      <NodeButtons node={node} {...props} />
    </div>
  )
}

/** Flushes the rules of a node, kills its proxy, changes its mode. */
export function NodeButtons({ node, ...props }: ActProps & { node: NodeInfo }) {
  const { can } = useSnapshot()
  const { name, mode, proxy } = node
  return (
    <>
      <span class="buttons">
        <ActButton {...props} action={{ action: 'flush', node: name }} label={`Flush its rules: ${name}`}>
          Flush its rules
        </ActButton>
        <ActButton
          {...props}
          action={{ action: 'kill-proxy', node: name }}
          label={`Kill its proxy: ${name}`}
          isOff={proxy.pid === null}
        >
          Kill its proxy
        </ActButton>
      </span>
      {can.modes.length > 0 && (
        <Choice
          {...props}
          words={`mode of ${name}`}
          values={can.modes}
          now={mode}
          actionFor={(value) => ({ action: 'mode', node: name, mode: value })}
        />
      )}
    </>
  )
}
