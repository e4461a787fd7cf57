// deploy/chart as `helm package` makes it, with the name and the version of the image that the release has.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { parse } from 'yaml'
import { checkout } from './checkout.mjs'
import { formatChartArchive } from './oci.mjs'
import { formatTar } from './tar.mjs'
import { folderEntries, textEntry } from './tree.mjs'

/** `image`: the name that the chart's DaemonSet gets, unless values name another. */
export function formatChart({ version, image, created }) {
  const folder = join(checkout, 'deploy', 'chart')
  const metadata = parse(readFileSync(join(folder, 'Chart.yaml'), 'utf8'))
  for (const field of ['version', 'appVersion']) {
    if (metadata[field] !== version) {
      throw new Error(`Cannot package the chart: ${field} in Chart.yaml is ${metadata[field]}, must be ${version}`)
    }
  }
  const values = readFileSync(join(folder, 'values.yaml'), 'utf8')
  const named = values.replace(/^( {2}repository: ).*$/m, `$1${image}`)
  if (parse(named).image.repository !== image) throw new Error('Cannot package the chart: values.yaml names no image')
  const entries = folderEntries(folder, metadata.name)
  entries.set(`${metadata.name}/values.yaml`, textEntry(named))
  entries.delete(`${metadata.name}/.helmignore`)
  const chart = gzipSync(formatTar(entries), { level: 9 })
  const { archive, digest } = formatChartArchive({ name: metadata.name, tag: version, chart, metadata, created })
  return { chart, archive, digest }
}
