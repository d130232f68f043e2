/** A way to Redis that a test can close: connections stay open, and nothing comes through. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'

export class RedisWay {
  open = true
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(port: number) {
    this.#server = createServer((client) => {
      const redis = connect(port, '127.0.0.1')
      this.#join(client, redis)
      this.#join(redis, client)
    })
  }

  static async start(t: Test, port: number): Promise<RedisWay> {
    const way = new RedisWay(port)
    await new Promise<void>((resolve) => way.#server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      for (const socket of way.#sockets) socket.destroy()
      way.#server.close()
    })
    return way
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from)
    from.on('data', (bytes) => {
      if (this.open) to.write(bytes)
    })
    from.on('error', () => {})
    from.on('close', () => {
      this.#sockets.delete(from)
      to.destroy()
    })
  }
}
