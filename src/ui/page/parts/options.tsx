/** The choices of a select that are called what they are. */
export function Options({ of }: { readonly of: readonly string[] }) {
  return (
    <>
      {of.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </>
  )
}
