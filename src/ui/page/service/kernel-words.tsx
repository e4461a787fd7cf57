import { useEffect, useRef } from 'preact/hooks'
import type { KernelObject, ServiceDetail } from '../../protocol.ts'
import { groupByHook, type RuleGroup } from './group-objects.ts'
import { isOwn } from './links.ts'
import { Pointer, row, type Pointing } from './pointing.tsx'

/** The rules, elements and virtual servers that packets meet, hook by hook. */
export function KernelWords({ detail, ...pointing }: Pointing & { readonly detail: ServiceDetail }) {
  const { pinned } = pointing
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (pinned === null || pinned.kind === 'object') return
    const found = list.current?.querySelector('.is-own') ?? list.current?.querySelector('.is-lit')
    found?.scrollIntoView({ block: 'nearest' })
  }, [pinned])
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
      <div class="kernel-list" ref={list} tabIndex={0} role="region" aria-label="Rules">
        {groupByHook(detail.objects).map(({ key, hook, family, places }) => (
          <div key={key} class="hook">
            <h3>
              {hook}
              {detail.kernel.length > 1 && <span class="small"> IPv{family}</span>}
            </h3>
            {places.map(({ place, rules }) => (
              <div key={place} class="place">
                <h4>{place}</h4>
                <ul>
                  {rules.map((rule) => (
                    <Rule key={rule.objects[0]!.id} rule={rule} {...pointing} />
                  ))}
                </ul>
              </div>
            ))}
          </div>
        ))}
      </div>
    </section>
  )
}

/** A rule, and the elements that packets find there. */
function Rule({ rule: { rule, comment, objects }, ...pointing }: Pointing & { readonly rule: RuleGroup }) {
  const [first] = objects
  if (objects.length === 1 && first !== undefined) {
    return (
      <li {...objectRow(pointing, first)} data-object={first.id}>
        <Pointer {...pointing} kind="object" id={first.id}>
          <code>{rule}</code>
        </Pointer>
        {comment !== null && <p class="comment"># {comment}</p>}
        <Found object={first} />
      </li>
    )
  }
  const isLit = pointing.linked !== null && objects.some(({ id }) => pointing.linked!.objects.has(id))
  return (
    <li class={isLit ? 'has-lit' : ''}>
      <code>{rule}</code>
      {comment !== null && <p class="comment"># {comment}</p>}
      <ul>
        {objects.map((object) => (
          <li key={object.id} {...objectRow(pointing, object)} data-object={object.id}>
            <Pointer {...pointing} kind="object" id={object.id}>
              {object.found.map((found) => (
                <code key={found} class="found">
                  {found}
                </code>
              ))}
            </Pointer>
          </li>
        ))}
      </ul>
    </li>
  )
}

/** Objects of the selected thing alone stand out more than shared ones. */
function objectRow(pointing: Pointing, object: KernelObject) {
  const props = row(pointing, 'object', object.id)
  const isSpecial = pointing.current?.kind === 'object' || isOwn(pointing.current, object)
  return { ...props, class: props.class === 'is-lit' && isSpecial ? 'is-lit is-own' : props.class }
}

function Found({ object: { found, packets, bytes } }: { object: KernelObject }) {
  return (
    <>
      {found.map((each) => (
        <p key={each} class="found">
          <code>{each}</code>
        </p>
      ))}
      {packets !== null && (
        <p class="small">
          {packets} packets, {bytes ?? 0} bytes
        </p>
      )}
    </>
  )
}
