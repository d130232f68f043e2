/** A load balancer of connections, as of a Kubernetes Service: each goes to one target, and stays there until one side closes it. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Scope } from './scope.js'

export class Balancer {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #targets: number[] = []
  #next = 0

  private constructor(scope: Scope) {
    this.#server = createServer((client) => this.#join(client))
    scope.teardown(() => {
      for (const socket of this.#sockets) socket.destroy()
      this.#server.close()
    })
  }

  static async start(scope: Scope): Promise<Balancer> {
    const balancer = new Balancer(scope)
    await new Promise<void>((resolve) => balancer.#server.listen(0, '127.0.0.1', resolve))
    return balancer
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Ports that get new connections. Those that exist stay. */
  set targets(ports: readonly number[]) {
    this.#targets = [...ports]
  }

  #join(client: Socket): void {
    const port = this.#targets[this.#next++ % this.#targets.length] as number
    const target = connect(port, '127.0.0.1')
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      this.#sockets.add(one)
      one.setNoDelay(true)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        this.#sockets.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  }
}
