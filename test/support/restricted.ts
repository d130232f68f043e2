/** The profile "restricted" of the Pod Security Standards, and a little more, as rules that name what they want. */
import { type Container, containersOf, type Pod } from './kubernetes.js'

const VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
]

const podRules: [what: string, holds: (pod: Pod) => boolean][] = [
  ['no namespace of the host', ({ hostNetwork, hostPID, hostIPC }) => !hostNetwork && !hostPID && !hostIPC],
  ['no process of the host', ({ securityContext }) => !securityContext?.windowsOptions?.hostProcess],
  [
    'no volume of the host',
    ({ volumes = [] }) =>
      volumes.every(({ name, ...kinds }) => Object.keys(kinds).every((kind) => VOLUMES.includes(kind))),
  ],
  ['no sysctls', ({ securityContext }) => !securityContext?.sysctls],
  ['not root', ({ securityContext }) => securityContext?.runAsNonRoot === true && securityContext.runAsUser !== 0],
  ['seccomp', ({ securityContext }) => securityContext?.seccompProfile?.type === 'RuntimeDefault'],
  ['no token of the cluster', ({ automountServiceAccountToken }) => automountServiceAccountToken === false],
]

/** The same of a container; a file system that cannot be written and bounds are what goes beyond the profile. */
type ContainerRule = (context: NonNullable<Container['securityContext']>, container: Container) => boolean
const containerRules: [what: string, holds: ContainerRule][] = [
  ['not privileged', ({ privileged }) => privileged !== true],
  ['no escalation', ({ allowPrivilegeEscalation }) => allowPrivilegeEscalation === false],
  ['no capabilities', ({ capabilities }) => capabilities?.drop?.includes('ALL') === true && !capabilities.add],
  ['not root', ({ runAsUser, runAsNonRoot }) => runAsUser !== 0 && runAsNonRoot !== false],
  ['seccomp as the pod says', ({ seccompProfile }) => seccompProfile === undefined],
  ['no /proc of its own', ({ procMount }) => procMount === undefined],
  ['no port of the host', (_context, { ports = [] }) => ports.every(({ hostPort }) => hostPort === undefined)],
  ['a file system that cannot be written', ({ readOnlyRootFilesystem }) => readOnlyRootFilesystem === true],
  ['bounds', (_context, { resources }) => Boolean(resources?.requests?.['cpu'] && resources.limits?.['memory'])],
]

/** What a pod does that the profile forbids. */
export function forbidden(pod: Pod): string[] {
  return [
    ...podRules.filter(([, holds]) => !holds(pod)).map(([what]) => what),
    ...containersOf(pod).flatMap((container) =>
      containerRules
        .filter(([, holds]) => !holds(container.securityContext ?? {}, container))
        .map(([what]) => `${container.name}: ${what}`),
    ),
  ]
}
