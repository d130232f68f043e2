/** Reads the answers on one connection, with a length or in chunks. An answer ends before the next request is sent. */

const HEAD_END = '\r\n\r\n'
const LINE_END = '\r\n'

/**
 * @typedef {object} Answer
 * @property {string} head
 * @property {boolean} events Whether it is an event stream.
 * @property {number} length Bytes of the body.
 * @property {Buffer[]} body Empty unless `keep` is set.
 */

export class AnswerReader {
  /** @param {(answer: Answer) => void} take Gets each answer when it is complete. */
  constructor(take) {
    this.take = take
    /** Whether the body of the next answer is kept. */
    this.keep = false
    /** @type {'head' | 'body' | 'size' | 'chunk' | 'chunk end' | 'end'} */
    this.state = 'head'
    /** @type {Buffer | undefined} The beginning of something that is not complete. */
    this.carry = undefined
    this.left = 0
    this.answer = emptyAnswer('')
  }

  /** @param {Buffer} chunk */
  read(chunk) {
    let rest = this.carry ? Buffer.concat([this.carry, chunk]) : chunk
    this.carry = undefined
    while (rest.length > 0) {
      const used = this.step(rest)
      if (used === 0) {
        this.carry = rest
        return
      }
      rest = rest.subarray(used)
    }
  }

  /**
   * @param {Buffer} bytes
   * @returns {number} How many of them were used; none if more are needed.
   */
  step(bytes) {
    switch (this.state) {
      case 'head':
        return this.readHead(bytes)
      case 'body':
      case 'chunk':
        return this.readBody(bytes)
      case 'size': {
        const end = bytes.indexOf(LINE_END)
        if (end < 0) return 0
        this.left = Number.parseInt(bytes.toString('latin1', 0, end), 16)
        this.state = this.left === 0 ? 'end' : 'chunk'
        return end + LINE_END.length
      }
      case 'chunk end':
      case 'end':
        if (bytes.length < LINE_END.length) return 0
        if (this.state === 'end') this.finish()
        else this.state = 'size'
        return LINE_END.length
    }
  }

  /** @param {Buffer} bytes */
  readHead(bytes) {
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) return 0
    const head = bytes.toString('latin1', 0, end)
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    this.answer = emptyAnswer(head)
    this.left = Number(length ?? 0)
    if (length === undefined && /\r\ntransfer-encoding: *chunked/i.test(head)) this.state = 'size'
    else if (this.left > 0) this.state = 'body'
    else this.finish()
    return end + HEAD_END.length
  }

  /** @param {Buffer} bytes */
  readBody(bytes) {
    const used = Math.min(this.left, bytes.length)
    this.left -= used
    this.answer.length += used
    if (this.keep) this.answer.body.push(bytes.subarray(0, used))
    if (this.left === 0) {
      if (this.state === 'chunk') this.state = 'chunk end'
      else this.finish()
    }
    return used
  }

  finish() {
    this.state = 'head'
    this.take(this.answer)
  }
}

/**
 * @param {string} head
 * @returns {Answer}
 */
function emptyAnswer(head) {
  return { head, events: /\r\ncontent-type: *text\/event-stream/i.test(head), length: 0, body: [] }
}
