/** Credentials that are known by their form, whatever name they have. */

/** A form of credentials, and its replacement: `$1` and `$2` are the parts that stay. */
export interface Form {
  readonly what: string
  readonly form: RegExp
  readonly shown: string
}

/** Stands in place of a hidden value. */
export const HIDDEN = '‹hidden›'

/** The table of forms. A form that contains another one comes first. */
export const FORMS: readonly Form[] = [
  {
    what: 'private keys in PEM, of OpenSSH and of PGP, which may be cut off',
    form: /-----BEGIN [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
    shown: HIDDEN,
  },
  {
    what: 'lines of such a key, which a log has one by one',
    form: /^(?=[a-z\d+/]{0,75}[A-Z])(?=[A-Z\d+/]{0,75}[a-z])(?:[A-Za-z\d+/]{64}|[A-Za-z\d+/]{70}|[A-Za-z\d+/]{76})$/gm,
    shown: HIDDEN,
  },
  {
    what: 'after a scheme of HTTP, except the name of a variable and what a sentence says of a scheme',
    form: /\b(Bearer|Basic|DPoP|Negotiate|NTLM)((?:\s|%20|:){1,9}\\{0,9}["']?)(?!(?:\$(?:env:)?[A-Z]\w*|\$\{[\w:]+\}|tokens|authentication|credentials?)[.:]?(?:[\s"'\\,;<>]|$)|(?:realm|scope|error(?:_description|_uri)?|resource_metadata)=)[^\s"'\\,;<>]{6,}/gi,
    shown: `$1$2${HIDDEN}`,
  },
  { what: 'before the host of an address', form: /(\/\/)[^\s/"'<>]{1,300}@/g, shown: `$1${HIDDEN}@` },
  {
    what: 'user and password for curl',
    form: /((?<![\w-])(?:-u|--user|--proxy-user)[\s=]{1,9}["']?[^\s:"']{1,100}:)[^\s"']{1,}/g,
    shown: `$1${HIDDEN}`,
  },
  {
    what: 'passwords of .netrc',
    form: /(\blogin\s{1,9}[^\s]{1,100}\s{1,9}password\s{1,9})[^\s"'\\]{1,}/g,
    shown: `$1${HIDDEN}`,
  },
  {
    what: 'parameters of addresses and forms that are secret only there',
    form: /((?:^(?=\S{0,2000}&)|[?&#])(?:auth|code|key|pass|pw|sig|signature)=)[^\s&"'<>#;\\]{1,}/gi,
    shown: `$1${HIDDEN}`,
  },
  { what: 'signatures of requests', form: /(\bsig(?:nature)?=)[\w%+/=~.-]{16,}/gi, shown: `$1${HIDDEN}` },
  { what: 'JSON Web Tokens', form: /\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]{0,2000})?/g, shown: HIDDEN },
  {
    what: 'addresses of webhooks',
    form: /(\bhooks\.slack\.com\/(?:services|workflows|triggers)\/|\bdiscord(?:app)?\.com\/api\/webhooks\/|\.webhook\.office\.com\/)[\w/@-]{10,}/g,
    shown: `$1${HIDDEN}`,
  },
  {
    what: 'code hosts: GitHub, GitLab, Bitbucket, Atlassian',
    form: /\b(?:gh[a-z]_[A-Za-z\d]{20,}|github_pat_\w{20,}|gl[a-z]{2,5}-[\w-]{16,}|AT(?:ATT|CTT|BB)[\w=-]{20,})/g,
    shown: HIDDEN,
  },
  {
    what: 'clouds: AWS, Google, DigitalOcean, Fly, Heroku, Netlify, Supabase, PlanetScale, Databricks, Vault, Terraform, Pulumi, Doppler',
    form: /\b(?:A(?:KI|SI|BI|CC)A[A-Z\d]{16}|AIza[\w-]{30,}|ya29\.[\w-]{10,}|GOCSPX-[\w-]{20,}|1\/\/0[\w-]{20,}|do[oprs]_v1_[a-f\d]{40,}|fo1_[\w-]{20,}|FlyV1 [\w+/=,-]{20,}|HRKU-[\w-]{20,}|nfp_[\w]{20,}|sb(?:p|_secret)_\w{20,}|pscale_[a-z]{2,5}_[\w.-]{20,}|dapi[a-f\d]{32}|hv[bsr]\.[\w-]{20,}|[A-Za-z\d]{14}\.atlasv1\.[\w-]{40,}|pul-[a-f\d]{40}|dp\.[a-z]{2,5}\.[A-Za-z\d.]{20,})/g,
    shown: HIDDEN,
  },
  {
    what: 'models: OpenAI, Anthropic, Hugging Face, Replicate, Groq, xAI, Perplexity, Tavily, Firecrawl, LangSmith',
    form: /\b(?:sk-[\w-]{20,}|hf_[A-Za-z\d]{30,}|r8_[A-Za-z\d]{30,}|gsk_[A-Za-z\d]{30,}|xai-[\w-]{30,}|pplx-[\w-]{30,}|tvly-[\w-]{20,}|fc-[a-f\d]{32}|lsv2_[\w]{20,})/g,
    shown: HIDDEN,
  },
  {
    what: 'packages and builds: npm, PyPI, RubyGems, crates.io, Docker, CircleCI, Buildkite, Postman',
    form: /\b(?:npm_[A-Za-z\d]{30,}|pypi-[\w-]{40,}|rubygems_[a-f\d]{40,}|cio[A-Za-z\d]{32}\b|dckr_[a-z]{3}_[\w-]{20,}|CCIPAT_[\w-]{20,}|bk[a-z]{2}_[a-f\d]{30,}|PMAK-[\w-]{20,})/g,
    shown: HIDDEN,
  },
  {
    what: 'services: Slack, Stripe, SendGrid, Mailgun, Mailchimp, Twilio, Telegram, Notion, Linear, Figma, Airtable, Shopify, Square',
    form: /\b(?:xox[a-z](?:\.xox[a-z])?-[\w-]{10,}|xapp-[\w-]{10,}|whsec_[\w+/=]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|key-[a-f\d]{32}|[a-f\d]{32}-us\d{1,2}\b|SK[a-f\d]{32}\b|\d{8,10}:[\w-]{35}|secret_[A-Za-z\d]{30,}|ntn_[A-Za-z\d]{30,}|figd_[\w-]{20,}|pat[A-Za-z\d]{14}\.[a-f\d]{60,}|shp[a-z]{2}_[a-fA-F\d]{32}|sq0[a-z]{3}-[\w-]{20,})/g,
    shown: HIDDEN,
  },
  {
    what: 'monitoring: Grafana, New Relic, Sentry; age',
    form: /\b(?:gl(?:sa|c)_[\w+/=-]{20,}|NRAK-[A-Z\d]{20,}|sntry[a-z]_[\w+/=-]{20,}|AGE-SECRET-KEY-1[A-Z\d]{20,})/g,
    shown: HIDDEN,
  },
  {
    what: 'other keys, whose prefix says what they are: sk_live_, lin_api_',
    form: /\b[A-Za-z]{2,10}_(?:api|key|live|oauth|pat|prod|secret|test|token)_(?=[A-Za-z]{0,60}\d)[A-Za-z\d]{16,}/g,
    shown: HIDDEN,
  },
]
