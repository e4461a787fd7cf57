import type { KernelObject, ServiceDetail } from '../../protocol.ts'
import { Pointer, row, type Pointing } from './pointing.tsx'

/** The rules, elements and virtual servers that packets meet, hook by hook. */
export function KernelWords({ detail, ...pointing }: Pointing & { readonly detail: ServiceDetail }) {
  return (
    <section aria-label="In the kernel’s words" class="kernel">
      <h2>
        In the kernel’s words <span class="tag">{detail.mode}</span>
      </h2>
      {detail.kernel.map(({ family, what, error, differences }) => (
        <div key={family} class="small">
          <p class="muted">{what}</p>
          {error !== null && <p class="error">{error}</p>}
          {differences.map((difference) => (
            <p key={difference} class="error">
              {difference}
            </p>
          ))}
        </div>
      ))}
      {groupByHook(detail.objects).map(({ key, hook, family, places }) => (
        <div key={key} class="hook">
          <h3>
            {hook}
            {detail.kernel.length > 1 && <span class="small"> IPv{family}</span>}
          </h3>
          {places.map(({ place, objects }) => (
            <div key={place} class="place">
              <h4>{place}</h4>
              <ul>
                {objects.map((object) => (
                  <li key={object.id} {...row(pointing, 'object', object.id)} data-object={object.id}>
                    <Pointer {...pointing} kind="object" id={object.id}>
                      <code>{object.rule}</code>
                    </Pointer>
                    {object.comment !== null && <p class="comment"># {object.comment}</p>}
                    {object.found.map((found) => (
                      <p key={found} class="found">
                        <code>{found}</code>
                      </p>
                    ))}
                    {object.packets !== null && (
                      <p class="small">
                        {object.packets} packets, {object.bytes ?? 0} bytes
                      </p>
                    )}
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </div>
      ))}
    </section>
  )
}

interface HookGroup {
  readonly key: string
  readonly hook: string
  readonly family: 4 | 6
  readonly places: { readonly place: string; readonly objects: KernelObject[] }[]
}

/** What stands at one hook and in one chain, together, in the order in which packets meet the first of it. */
function groupByHook(objects: readonly KernelObject[]): HookGroup[] {
  const groups = new Map<string, HookGroup>()
  for (const object of objects) {
    const key = `${object.family} ${object.hook}`
    const group: HookGroup = groups.get(key) ?? { key, hook: object.hook, family: object.family, places: [] }
    groups.set(key, group)
    const place = group.places.find((each) => each.place === object.place)
    if (place === undefined) group.places.push({ place: object.place, objects: [object] })
    else place.objects.push(object)
  }
  return [...groups.values()]
}
