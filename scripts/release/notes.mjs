// What people read before they take a release: the changelog's section, and how to check and install the files.

/** The text between `## VERSION` and the next section. Throws where there is none. */
export function sectionOf(changelog, title) {
  const sections = changelog.split(/^## /m).slice(1)
  const found = sections.find((each) => each.slice(0, each.indexOf('\n')).trim().split(' ')[0] === title)
  if (found === undefined) throw new Error(`Cannot write release notes: CHANGELOG.md has no section "## ${title}"`)
  const text = found.slice(found.indexOf('\n')).trim()
  if (text === '') throw new Error(`Cannot write release notes: the section "## ${title}" of CHANGELOG.md is empty`)
  return text
}

/** `assets`: names of files, each with what it is. */
export function formatNotes({ version, section, image, digest, assets, isSigned }) {
  const files = assets.map(({ name, what }) => `| \`${name}\` | ${what} |\n`).join('')
  const signed = `
Each file has a signature, as \`cosign sign-blob\` makes it:

    cosign verify-blob --key release.pub --signature FILE.sig --insecure-ignore-tlog=true FILE
    base64 -d FILE.sig >sig && openssl dgst -sha256 -verify release.pub -signature sig FILE     # the same, without cosign
`
  return `# kube-proxy-ts ${version}

${section}

## Files

| file | what it is |
| --- | --- |
${files}
The image is \`${image}:${version}\`, \`${digest}\`.

## How to check them

    sha256sum --check --ignore-missing SHA256SUMS
${isSigned ? signed : ''}
The provenance says from which commit and which packages they were made. From the same commit, with the same versions of Node and npm,
\`npm run release -- ${version}\` makes the same bytes (signatures aside).
`
}
