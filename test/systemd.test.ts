/** The units of docs/systemd.md: systemd takes them, the service is as confined as it says, and it fits the configuration beside it. */
import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { commandIn, secret } from './support/deployment.js'
import { temporaryFolder } from './support/folder.js'
import { config, socketUnit, unit, values } from './support/systemd-units.js'
import { lacks } from './support/tools.js'

const skip = lacks('systemd-analyze', ['--version'])

/** Writes the units where they are checked, with a program that is there in the place of the bridge. */
function unitFile(t: Test, text = unit): string {
  const folder = temporaryFolder(t)
  const program = join(folder, 'mcp-bridge')
  writeFileSync(program, '#!/bin/sh\n')
  chmodSync(program, 0o755)
  const file = join(folder, 'mcp-bridge.service')
  writeFileSync(file, text.replace('/usr/bin/mcp-bridge', program))
  writeFileSync(join(folder, 'mcp-bridge.socket'), socketUnit)
  return file
}

t.test('systemd understands every line of the units', { skip }, async (t) => {
  const verify = (text?: string) => {
    const file = unitFile(t, text)
    const args = ['verify', '--man=no', file, file.replace(/service$/, 'socket')]
    const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
    // It also looks at the units of the machine that this one refers to.
    const said = `${stdout}${stderr}`.split('\n').filter((line) => /mcp-bridge\.(?:service|socket)/.test(line))
    return { status, said }
  }
  t.same(verify().said, [])
  t.match(
    verify(unit.replace('ProtectSystem=strict', 'ProtectSystm=strict')).said,
    [/ProtectSystm/],
    'a mistake is found',
  )
})

t.test('the unit is as confined as a program that compiles JavaScript can be', { skip }, async (t) => {
  const args = ['security', '--offline=true', '--threshold=15', '--no-pager', unitFile(t)]
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
  t.equal(status, 0, `exposure of at most 1.5 of 10: ${stdout}${stderr}`)
})

t.test('the bridge accepts the configuration, and finds its secrets where the unit puts them', async (t) => {
  const credentials = values('LoadCredential').map((value) => value.split(':')[0] as string)
  const [, path = ''] = /--config (\S+)/.exec(values('ExecStart')[0] ?? '') ?? []
  const files = new Map(credentials.map((name) => [`/run/credentials/mcp-bridge.service/${name}`, secret(name)]))
  t.same([...config.matchAll(/\$\{file:([^}]+)\}/g)].map(([, file]) => file).sort(), [...files.keys()].sort())
  files.set(path, config)
  const command = commandIn(t, ['--config', path], files)
  if (command.kind !== 'run') return t.fail('it serves nothing')
  const { drainDelay, drainTimeout } = command.settings.timeouts
  t.ok(Number(values('TimeoutStopSec')[0]) * 1_000 >= drainDelay + drainTimeout + 5_000, 'there is time to end')
})
