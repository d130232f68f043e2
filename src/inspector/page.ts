/** The page as text. The build puts the bundled page here; without a build there is none. */

export interface PageFiles {
  html: string
  script: string
  style: string
  icon: string
}

export const PAGE: PageFiles | undefined = undefined
