/** How many workers `auto` means, by the limits of cgroups. */
import { availableParallelism } from 'node:os'
import t from 'tap'
import { workersOf } from '../../src/command/worker-count.js'

const cpus = availableParallelism()
const within = (files: Record<string, string>) => workersOf('auto', (path) => files[path])

t.test('a number means itself, and auto the CPUs that this process may use', async (t) => {
  t.equal(workersOf(3), 3)
  t.equal(within({}), cpus)
})

t.test('the limit of the own cgroup counts, and so do those above it', async (t) => {
  t.equal(within({ '/sys/fs/cgroup/cpu.max': '100000 100000' }), 1, 'in a container')
  t.equal(within({ '/sys/fs/cgroup/cpu.max': '50000 100000' }), 1, 'there is at least one')
  t.equal(within({ '/sys/fs/cgroup/cpu.max': 'max 100000' }), cpus)
  t.equal(within({ '/sys/fs/cgroup/cpu.max': '190000 100000' }), 1, 'a part of a CPU is none for a worker')
  const unit = { '/proc/self/cgroup': '0::/system.slice/bridge.service' }
  t.equal(within({ ...unit, '/sys/fs/cgroup/system.slice/bridge.service/cpu.max': '100000 100000' }), 1)
  t.equal(within({ ...unit, '/sys/fs/cgroup/system.slice/cpu.max': '100000 100000' }), 1)
  const old = (quota: string) => ({
    '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': quota,
    '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000',
  })
  t.equal(within(old('100000')), 1, 'cgroups of version 1')
  t.equal(within(old('-1')), cpus)
})
