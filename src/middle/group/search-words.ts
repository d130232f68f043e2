/**
 * The words of texts about tools and of questions. They are searched by their stems, so that `lists` is `list`, and by words
 * with the same meaning.
 */
import { stemmer } from 'stemmer'

/**
 * Words of any script, and parts of names: `getFile_content2` has get, file, content and 2. In Chinese and Japanese,
 * words are not separated, so each character counts.
 */
const WORDS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{M}]+|\p{Lu}|\p{N}+/gu
const ENGLISH = /^[a-z]+$/
/** Longer words keep their endings, and are cut off. In characters. */
const MAX_STEMMED = 30
const MAX_WORD = 60

/** Words of questions that say nothing about a tool. */
const EMPTY_WORDS =
  'a about all am an and any are at be by can could do does for from have how i in into is it its let me my of on or our out please s ' +
  'some t that the their them then there these this those to up use using want what when where which who with would you your'

/** Words that people use for the same. Each row has words with one meaning. */
const SAME_MEANING = [
  'add append attach insert put',
  'address location place',
  'altitude elevation height',
  'answer reply respond',
  'approve accept review',
  'ask query question',
  'big large size length',
  'browser chrome tab page',
  'bug issue ticket problem',
  'build pipeline ci workflow job',
  'call invoke run execute',
  'change edit modify update alter patch set',
  'chart diagram graph plot',
  'check verify validate test inspect status',
  'click press tap push',
  'close end finish stop exit',
  'code source',
  'command shell terminal exec',
  'comment note remark',
  'compare diff difference',
  'connect link relate associate',
  'copy duplicate clone cp',
  'create make new add generate build open',
  'data record row entry',
  'database db',
  'delete remove erase drop forget destroy uninstall discard trash rm unset',
  'deploy release publish',
  'detail details describe information info metadata about',
  'directory folder dir',
  'drive travel route directions',
  'email mail',
  'emoji reaction',
  'error exception failure problem',
  'extract scrape parse crawl',
  'fetch download get retrieve load',
  'file document',
  'fill enter type input write',
  'find search look lookup query locate discover',
  'get show read view display see fetch give',
  'go navigate open visit browse',
  'group team',
  'history log past',
  'image picture photo',
  'javascript script js code',
  'kill terminate stop cancel abort',
  'knowledge memory',
  'latest last newest recent',
  'list show ls all enumerate which what',
  'many multiple several various bulk batch',
  'message chat post',
  'mkdir directory',
  'modified changed updated',
  'money credit cost billing price usage',
  'move rename mv',
  'nearby near around close',
  'paper article publication study',
  'permission access right allowed',
  'person people user member who',
  'performance speed fast slow',
  'pr pull merge',
  'mr merge',
  'previous back',
  'remember store save add memory',
  'repository repo project',
  'restart rollout reload',
  'run start execute launch begin trigger',
  'save write store',
  'screenshot picture image',
  'send post write publish',
  'site website web page webpage url internet online',
  'table sheet',
  'template boilerplate',
  'undo revert reset restore rollback',
  'wait sleep pause until',
  'watch monitor observe track subscribe',
  'who author',
]

/** The words of a text in lower case, in order. */
export function wordsIn(text: string): string[] {
  return (text.normalize('NFKC').match(WORDS) ?? []).map((word) => word.toLowerCase().slice(0, MAX_WORD))
}

/** A word without its ending. */
export function stemOf(word: string): string {
  return word.length <= MAX_STEMMED && ENGLISH.test(word) ? stemmer(word) : word
}

/** A word of a question, and its stem. */
export interface AskedWord {
  word: string
  stem: string
}

/** The different words of a question, without those that say nothing, unless it has no others. */
export function askedIn(question: string): AskedWord[] {
  const byStem = new Map(wordsIn(question).map((word) => [stemOf(word), word] as const))
  const words = [...byStem].map(([stem, word]) => ({ word, stem }))
  const telling = words.filter(({ stem }) => !tables().empty.has(stem))
  return telling.length > 0 ? telling : words
}

/** Other stems with the same meaning. */
export function othersFor(stem: string): string[] {
  return [...(tables().meanings.get(stem) ?? [])].filter((other) => other !== stem)
}

/** The words that have others with the same meaning, as they are written. */
export function tableWords(): ReadonlySet<string> {
  return tables().written
}

/** Whether a word is spelled as one of the tables. */
export function isTableWord(word: string): boolean {
  return tables().written.has(word)
}

/** Both tables, by stems. */
interface Tables {
  written: ReadonlySet<string>
  empty: ReadonlySet<string>
  meanings: ReadonlyMap<string, ReadonlySet<string>>
}

let read: Tables | undefined
function tables(): Tables {
  if (read) return read
  const stemsIn = (text: string) => wordsIn(text).map(stemOf)
  const meanings = new Map<string, Set<string>>()
  for (const row of SAME_MEANING.map(stemsIn))
    for (const stem of row) meanings.set(stem, new Set([...(meanings.get(stem) ?? []), ...row]))
  const written = new Set(SAME_MEANING.flatMap((row) => wordsIn(row)))
  read = { written, empty: new Set(stemsIn(EMPTY_WORDS)), meanings }
  return read
}
