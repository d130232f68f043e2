/** The events of the log with their meanings, and the type of a log that requires an event for each line. */

/**
 * Every event of the log. Names are stable, because people build dashboards and alerts on them; messages may change.
 * docs/reference/log-events.md has the same list, with levels and fields: test/log/events.test.ts compares the two.
 */
export const LOG_EVENTS = {
  call: 'A call is over.',
  call_forwarded: 'Another replica answers a call and logs its `call`.',
  request_refused:
    'A request was refused before it became a call. At most five lines for each `fault` in 10 seconds, and five with `said`.',
  refusals_left_out: 'More requests were refused than have a line. One line for each `fault` in 10 seconds.',
  request_failed: 'A request failed because of an error in the bridge, before it became a call.',
  audit_failed: 'The audit log cannot be written. Logged once until it can be written again.',
  audit_resumed: 'The audit log can be written again.',
  message_refused: 'A line on stdio was refused: it is not a valid message, or not allowed in this state.',
  message_failed: 'An error in the bridge while it handled a message of a client on stdio or HTTP+SSE.',
  answer_failed: 'An error in the bridge while it answered a request.',
  forward_failed: 'The replica that owns a call or session did not answer.',
  changes_dropped:
    'Changes were dropped: a modern client reads its subscription too slowly. Once for each subscription.',
  feature_omitted:
    'A feature was left out because the revision of the client does not have it. Once for each session and feature.',
  subscription_failed: 'A subscription that serves a legacy client could not be opened again.',
  stdin_failed: 'Reading from stdin failed. The bridge shuts down.',
  stdout_closed: 'The client closed stdout. The bridge shuts down.',

  server_ready:
    'A server answers. Logged for each server at the start, and for new ones after a change of the configuration.',
  server_unavailable:
    'A server does not answer. Logged at the same times as `server_ready`. As the last line: the only server is a program that cannot be started.',
  server_gone: 'A server exited or closed the connection.',
  address_left: 'One of several addresses of a server could not be reached, or was busy. Another one gets the call.',
  address_rests:
    'One of several addresses of a server has failed three times in a row. It gets one call from time to time.',
  address_works: 'An address that has rested works again.',
  addresses_changed: 'The name of a server leads to other IP addresses. Those that have left get nothing new.',
  addresses_unknown: 'The addresses of a server cannot be looked up. The known ones stay.',
  server_stderr: 'A server wrote a line to stderr.',
  server_close_failed: 'A server that is no longer configured could not be shut down.',
  server_not_published: 'A server did not describe itself, so it is not in the manifest that `publish` serves.',
  era_detected: 'The protocol era of a server was detected.',
  era_unknown: 'The protocol era of a server stays unknown until the first authenticated request.',
  message_skipped:
    'A server sent something that is not a message. At most one line in 10 seconds for each process or session.',
  message_repaired:
    'A server sent something that had to be repaired to be read. Once for each kind of repair in a process or session.',
  message_dropped: 'A message of a server was dropped: no request is waiting for it.',
  server_request_dropped: 'A modern server sent a request, which its revision does not allow. It was dropped.',
  log_message_dropped: 'A log message of a server was dropped: it belongs to no call.',
  notification_failed: 'A notification of a client could not be delivered to a server.',
  session_continued: 'This replica continues the session of a legacy client, because its replica has shut down.',
  output_schemas_omitted:
    'A legacy server lists tools with an `outputSchema` that validators cannot compile, such as one with a `$ref` to nothing. Legacy clients get these tools without it, because some refuse the whole list. Once for each tool.',
  session_reopened: 'A server lost the session of a legacy client on stdio or HTTP+SSE. The bridge opened another one.',
  session_reopen_failed: 'An attempt to open another session failed.',
  setting_not_restored:
    'A subscription or log level, which a server had accepted before, could not be set again in the new session.',
  capabilities_changed:
    'The capabilities of a server differ from those that the client was given, after a session was lost.',

  group_incomplete: 'A server of a group did not answer when it was asked for a list. Once until it answers again.',
  path_grouped:
    'After a reload, a group is served at the path that a server had. There, names have a prefix; at the own path of the server, they have none. Sessions that were opened at the shared path continue with the server.',
  group_complete: 'A server of a group answers again.',
  tools_not_learned:
    'The tools of a discovered server could not be listed, so it stays in quarantine. The bridge tries again.',
  group_list_cut:
    'A list of a server of a group has too many pages or bytes, takes too long, or has more tools than fit in the index of a search. What comes after these bounds is not found by search, nor by name in a group without prefixes. Once for each list.',
  group_tools_large:
    'The tools of a group take more than 20,000 tokens of a model, which reads all of them before it does anything. Once, and again for a list that is twice as large.',
  group_name_hidden:
    'An item of a list is left out in a group: an earlier server of a group without prefixes has the same name or URI, or its server lists it twice, or it is not as MCP defines it. Once for each name.',
  lists_not_kept:
    'What servers listed cannot be kept beyond a restart, or what was kept cannot be used, because it is damaged, is sealed with an unknown key, or others may change it. The bridge works without it. Once.',
  group_items_repaired:
    'Items of a list have members that are not as MCP defines them, such as a title that is a number. In a group these members are left out or replaced, because some clients refuse the whole list. Once for each item.',
  group_uri_ambiguous:
    'A client sent a URI without prefix that several servers of a group have listed, served or sent. It is not read: the error names the URIs with prefixes. Once for each URI.',
  group_names_long:
    'Tool names of a group are so long that some clients refuse them: clients that prefix the name of the server and allow 64 characters. Once for each name.',
  group_names_unusual:
    'Tool names of a group have other characters than letters, digits, "_" and "-", which APIs of models refuse. Once for each name.',

  sign_in_required: 'A server requires a sign-in, which the first request starts.',
  sign_in_started: 'Somebody is asked to sign in to a server.',
  browser_unavailable:
    'No browser could be opened. The address of the sign-in page is on the terminal; without a terminal, a command shows it.',
  signed_in: 'Somebody signed in to a server.',
  sign_in_failed: 'A sign-in failed.',
  sign_in_link_foreign: 'Somebody opened the sign-in link of another person. Nothing was stored.',
  issuer_unavailable:
    'The keys of an identity provider cannot be had, so its tokens cannot be checked. Once until they can be had.',
  issuer_available: 'The keys of an identity provider can be had again.',
  issuer_keys_left_out: 'An identity provider has more keys than the bridge keeps.',
  tokens_not_stored: 'Tokens cannot be stored. They are lost when the process ends.',

  listening: 'The bridge accepts requests for a server.',
  admin_listening: 'The bridge serves health and metrics on the address `admin`.',
  inspector_listening: 'The inspector is served.',
  inspector_opened: 'A viewer opened the event stream of the inspector.',
  inspector_payloads: 'A viewer changed which messages the inspector keeps as text.',
  inspector_cleared: 'A viewer cleared the events of the inspector.',
  inspector_failed: 'The socket or pipe of the inspector cannot be opened. The bridge works without it.',
  recording_started: 'Calls are written into the file of `--record`.',
  recording_full: 'The file of `--record` is full. Further calls are not written.',
  recording_failed: 'The file of `--record` cannot be written. The bridge tries again after the next call.',
  call_not_recorded: 'A call is not written into the file of `--record`.',
  no_servers: 'No server was found yet. Each one is served as soon as it is found.',
  stopping: 'The bridge shuts down.',
  draining: 'The bridge waits for requests in progress before it shuts down.',
  listen_failed: 'The bridge cannot listen. It ends with exit code 1.',
  command_line_invalid: 'The command line is invalid. The bridge ends with exit code 2.',
  unexpected_error: 'An error in the bridge. It ends with exit code 1.',
  log_lines_dropped: 'Lines are missing here: the log could not be written fast enough.',
  descriptors_exhausted:
    'No file descriptors are left, so connections and programs cannot be opened. At most one line in 10 minutes.',
  status_socket_failed: 'The socket on which `mcp-bridge status` finds this bridge cannot be made.',
  health_file_failed:
    'The file for the health check of the image cannot be written (`MCP_BRIDGE_HEALTH_FILE`), so its container counts as unhealthy. Logged once until it can be written again.',
  worker_lost: 'A worker has ended by itself. Another one takes its place.',
  node_outdated: 'This version of Node.js has a known vulnerability.',

  config_invalid:
    'The configuration is invalid. After a change, the previous one stays; at the start, the bridge ends.',
  certificate_unusable: 'A certificate or key has changed, and is unusable. The previous one stays.',
  config_unusable: 'The configuration is valid, but could not be used. The previous one stays.',
  config_changed: 'A new configuration is in use.',
  config_unchanged: 'The bridge was asked to read its configuration again (SIGHUP), and was started without a file.',
  config_adjusted: 'A part of the configuration was left out or changed.',
  config_suspicious: 'A value of the configuration is probably a mistake.',
  config_format_detected: 'The configuration is in the format of another program.',
  config_writable:
    'The group may write to a configuration file or its folder, so its members decide which programs start.',
  restart_required: 'Some changed options take effect only after a restart.',

  search_started: 'The bridge looks for servers.',
  search_failed: 'An error in the bridge while it looked for servers.',
  source_unavailable: 'A source of discovery cannot be read.',
  candidate_unusable: 'A discovered server cannot be served.',
  discovery_failed: 'A phase of discovery failed for a discovered server.',
  trust_changed: 'The trust in a discovered server changed.',
  trust_store_failed:
    'The trust store cannot be written: serials of manifests, tools seen first and withdrawn approvals count in this process only. The bridge tries again every 30 seconds. Once until they are written.',
  trust_store_resumed: 'What the trust store lacked is written.',

  redis_unavailable:
    'Redis is unreachable, or refuses what the bridge needs. Once, and once for each code of its errors, until it is available again.',
  redis_available: 'Redis is available again, for two seconds at least.',
  redis_connect_failed: 'The first connection to Redis failed.',
  redis_may_evict: 'Redis may evict keys that the replicas need.',
  internal_request_refused:
    'A request at the address for replicas was not signed by a replica, or was late or repeated. Once a minute for each reason.',
  replica_refused: 'Another replica refuses the requests of this one. Once a minute for each reason.',
  tracing_disabled: 'No traces are exported: a variable has an unsupported value.',
  tracing_problem: 'OpenTelemetry reports a problem with its variables or its collector.',
} as const satisfies Readonly<Record<string, string>>

export type LogEvent = keyof typeof LOG_EVENTS

/** Fields of a line besides its message. Never a secret, a header value, an argument, a result or an address with a query. */
export interface LogFields {
  event: LogEvent
  [field: string]: unknown
}

type Write = (fields: LogFields, message: string) => void

/** The log. Code that needs a part of it picks that part from this type, so that each line has an event. */
export interface Log {
  debug: Write
  info: Write
  warn: Write
  error: Write
  fatal: Write
  isLevelEnabled(level: string): boolean
  /** A log whose lines all name the server or group. */
  child(fields: { server: string } | { group: string } | { worker: number }): Log
}
