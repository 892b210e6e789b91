// Package config defines and reads every setting of the program.
//
// A setting comes from its default, the YAML file, the environment or a flag;
// later sources override earlier ones. Its name is the same everywhere:
// limits.active_runs in the file, ATELIER_LIMITS_ACTIVE_RUNS in the environment
// and --limits.active-runs (or --limits.active_runs) as a flag.
//
// Only package cmd imports this package; it passes the settings on in the
// option structs of other packages.
package config

import (
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Config has all settings. The help of commands omits the settings marked
// hidden; "atelier config" lists them. Otherwise they work like all other
// settings.
type Config struct {
	Config   string   `help:"YAML file with settings." placeholder:"FILE"`
	Data     string   `help:"Folder of the embedded database, files and keys." default:"./data" placeholder:"DIR"`
	Database string   `help:"sqlite:///path or postgres://… (default: inside --data)." placeholder:"URL" secret:"url"`
	Blobs    string   `help:"file:///dir or s3://bucket?endpoint=… (default: inside --data)." placeholder:"URL"`
	Listen   string   `help:"Address to serve on." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	BaseURL  string   `name:"base-url" help:"Address that callers use (default: from --listen)." placeholder:"URL"`
	AppURL   string   `name:"app-url" help:"Address of the studio and the sign-in pages (default: --base-url)." placeholder:"URL"`
	Tools    string   `help:"Folder with manifests of your own tools." placeholder:"DIR"`
	Backends string   `help:"YAML file with the model servers that tools run on." placeholder:"FILE"`
	Roles    []string `help:"What this process does: api, worker or both." default:"api,worker" placeholder:"ROLE,…"`
	Pools    []string `help:"Pools whose engines this worker executes runs of, such as cpu,gpu (default: all)." placeholder:"POOL,…"`

	Secret      string `hidden:"" help:"Secret shared by all nodes, 32 random bytes in base64 (default: a file inside --data)." secret:"all"`
	Connections int    `hidden:"" help:"Maximum number of database connections of this node." default:"16" least:"1"`
	Signup      string `hidden:"" help:"Who may sign up: open, invite or closed." default:"open" enum:"open,invite,closed"`

	RequireVerifiedEmail bool `hidden:"" help:"Give people with an unverified e-mail address read-only access." default:"false" negatable:""`

	Operators []string `hidden:"" help:"E-mail addresses of the people who may use the operator's page and its API routes, once their address is verified."`

	Pool        Pool        `embed:"" prefix:"database."` // the prefix is the name of the setting Database
	Log         Log         `embed:"" prefix:"log."`
	Metrics     Metrics     `embed:"" prefix:"metrics."`
	Trace       Trace       `embed:"" prefix:"trace."`
	HTTP        HTTP        `embed:"" prefix:"http."`
	Shutdown    Shutdown    `embed:"" prefix:"shutdown."`
	S3          S3          `embed:"" prefix:"s3."`
	Catalog     Catalog     `embed:"" prefix:"catalog."`
	Limits      Limits      `embed:"" prefix:"limits."`
	Sessions    Sessions    `embed:"" prefix:"sessions."`
	SMTP        SMTP        `embed:"" prefix:"smtp."`
	OIDC        OIDC        `embed:"" prefix:"oidc."`
	Device      Device      `embed:"" prefix:"device."`
	Credentials Credentials `embed:"" prefix:"tokens."` // the prefix is the same as that of Tokens
	Tokens      Tokens      `embed:"" prefix:"tokens."`
	Runs        Runs        `embed:"" prefix:"runs."`
	Engines     Engines     `embed:"" prefix:"engines."`
	Webhook     Webhook     `embed:"" prefix:"webhook."`
	Media       Media       `embed:"" prefix:"media."`
	Memory      Memory      `embed:"" prefix:"memory."`
	Policy      Policy      `embed:"" prefix:"policy."`
	Retention   Retention   `embed:"" prefix:"retention."`
	Storage     Storage     `embed:"" prefix:"storage."`
	Uploads     Uploads     `embed:"" prefix:"uploads."`
	Reporting   Reporting   `embed:"" prefix:"reporting."`
	OpenAI      OpenAIDoor  `embed:"" prefix:"openai."`
	OAuth       OAuth       `embed:"" prefix:"oauth."`
	MCP         MCPDoor     `embed:"" prefix:"mcp."`
}

// Pool has the settings for the connections to PostgreSQL and for its replica.
// The number of connections is the setting Connections.
type Pool struct {
	IdleConnections    int    `hidden:"" help:"Idle connections to PostgreSQL that are kept open." default:"0" least:"0"`
	ConnectionLifetime Span   `hidden:"" help:"Age at which a connection to PostgreSQL is replaced." default:"1h" least:"1"`
	ConnectionIdleTime Span   `hidden:"" help:"Time after which an idle connection to PostgreSQL is closed." default:"30m" least:"1"`
	Replica            string `hidden:"" help:"postgres://… of a streaming replica that answers reports and later pages of lists; empty means none." placeholder:"URL" secret:"url"`
	ReplicaConnections int    `hidden:"" help:"Maximum number of connections of this node to the replica." default:"8" least:"1"`
	ReplicaLag         Span   `hidden:"" help:"The replica is not used while it is further behind." default:"5s" least:"1"`
}

// Log has the settings for logging.
type Log struct {
	Format string `hidden:"" help:"text, json, or auto: text on a terminal." default:"auto" enum:"auto,text,json"`
	Level  string `hidden:"" help:"Lowest level that is logged." default:"info" enum:"debug,info,warn,error"`
}

// Metrics has the settings for the Prometheus endpoint.
type Metrics struct {
	Listen string `hidden:"" help:"Address of /metrics; off for none." default:"127.0.0.1:9464"`
}

// Trace has the settings for OpenTelemetry traces.
type Trace struct {
	Endpoint string  `hidden:"" help:"OTLP endpoint over HTTP; empty sends none."`
	Sample   float64 `hidden:"" help:"Fraction of requests that are traced, 0 to 1." default:"1"`
}

// HTTP has the settings for the HTTP server.
type HTTP struct {
	TrustedProxies []netip.Prefix `hidden:"" help:"Networks of trusted proxies, whose X-Forwarded-For is used."`
	HeaderTimeout  Span           `hidden:"" help:"Longest wait for a request's headers." default:"5s" least:"1"`
	BodyTimeout    Span           `hidden:"" help:"Longest wait for a small request's body." default:"30s" least:"1"`
	WriteTimeout   Span           `hidden:"" help:"Longest time for a client to read a response." default:"60s" least:"1"`
	IdleTimeout    Span           `hidden:"" help:"How long an idle connection is kept open." default:"120s" least:"1"`
	HeaderBytes    Size           `hidden:"" help:"Largest headers of a request." default:"64KB" least:"1"`

	Connections           int `hidden:"" help:"Maximum number of client connections; 0 follows the limit on open files." default:"0" least:"0"`
	ConnectionsPerAddress int `hidden:"" help:"Maximum number of connections per IP address or IPv6 /64 network; 0 means an eighth of all." default:"0" least:"0"`

	TLSCert        string   `name:"tls-cert" hidden:"" help:"PEM file with the certificate chain for HTTPS; reloaded when it changes."`
	TLSKey         string   `name:"tls-key" hidden:"" help:"PEM file with the private key of http.tls_cert."`
	ACMEDomains    []string `name:"acme-domains" hidden:"" help:"Domains to obtain certificates for by ACME; setting them accepts the authority's terms of service."`
	ACMEEmail      string   `name:"acme-email" hidden:"" help:"Contact e-mail address for the authority; empty means none."`
	ACMEDirectory  string   `name:"acme-directory" hidden:"" help:"ACME directory of the authority." default:"https://acme-v02.api.letsencrypt.org/directory"`
	ACMERoots      string   `name:"acme-roots" hidden:"" help:"PEM file with the roots that verify the authority's own server (default: the system's)."`
	RedirectListen string   `hidden:"" help:"Address that redirects HTTP to HTTPS and answers ACME http-01 challenges, such as :80; empty means none." placeholder:"HOST:PORT"`

	CORSOrigins []string `name:"cors-origins" hidden:"" help:"Origins whose pages may call the API with a bearer token, such as https://app.example.com."`
}

// Shutdown has the time limits for shutting down.
type Shutdown struct {
	Delay   Span `hidden:"" help:"Delay between reporting not ready and closing the listener, so that load balancers notice." default:"1s" least:"0"`
	Timeout Span `hidden:"" help:"Longest time for running requests and jobs to finish at shutdown." default:"25s" least:"1"`
}

// S3 has the credentials for the S3-compatible object storage.
type S3 struct {
	AccessKey string `hidden:"" help:"Access key of the S3 server." secret:"all"`
	SecretKey string `hidden:"" help:"Secret key of the S3 server." secret:"all"`
}

// Catalog has the settings for the tool catalog.
type Catalog struct {
	Builtin bool `hidden:"" help:"Offer the built-in tools." default:"true" negatable:""`
	Refresh Span `hidden:"" help:"Interval between checks for changed manifests." default:"1s" least:"1"`
}

// Limits has the limits on requests and runs, most of them per person.
type Limits struct {
	InputFiles           int  `hidden:"" help:"Maximum number of input files of a run." default:"12" least:"1"`
	FileBytes            Size `hidden:"" help:"Largest file." default:"50MB" least:"1"`
	RequestBytes         Size `hidden:"" help:"Largest multipart body in total." default:"250MB" least:"1"`
	JSONBytes            Size `name:"json-bytes" hidden:"" help:"Largest JSON body." default:"1MB" least:"1"`
	JSONDepth            int  `name:"json-depth" hidden:"" help:"Maximum nesting depth of a JSON body." default:"64" least:"1"`
	MetadataBytes        Size `hidden:"" help:"Largest metadata of a run." default:"8KB" least:"1"`
	ActiveRuns           int  `hidden:"" help:"Maximum number of active runs per person." default:"10" least:"1"`
	CreatePerMinute      int  `hidden:"" help:"Runs that a person may create per minute." default:"10" least:"1"`
	CreatePerHour        int  `hidden:"" help:"Runs that a person may create per hour." default:"100" least:"1"`
	NumResults           int  `hidden:"" help:"Maximum number of results of a run." default:"64" least:"1"`
	RequestsPerMinute    int  `hidden:"" help:"Other requests per minute of a person, or of an IP address without a person; 0 means no limit." default:"6000" least:"0"`
	PageSize             int  `hidden:"" help:"Largest page of a list." default:"100" least:"1"`
	PageDefault          int  `hidden:"" help:"Default page size of lists." default:"24" least:"1"`
	ToolsPageDefault     int  `hidden:"" help:"Default page size of the list of tools." default:"100" least:"1"`
	IdempotencyKeyLength int  `hidden:"" help:"Longest Idempotency-Key." default:"255" least:"1"`
	IdempotencyLifetime  Span `hidden:"" help:"How long an Idempotency-Key is kept." default:"24h" least:"1"`
	IdempotencyWait      Span `hidden:"" help:"How long a second request waits for the first with its key." default:"10s" least:"0"`
	PluginLength         int  `hidden:"" help:"Longest plugin name of a run." default:"64" least:"1"`
	PluginKindLength     int  `hidden:"" help:"Longest plugin kind of a device, at most 32." default:"32" least:"1"`
}

// Sessions has the lifetimes of browser sessions.
type Sessions struct {
	Lifetime Span `hidden:"" help:"How long a browser stays signed in." default:"720h" least:"1"`
	Known    Span `hidden:"" help:"How long after a sign-in a browser counts as known, so that other people's wrong passwords do not block it." default:"4320h" least:"1"`
}

// SMTP has the settings for outgoing mail.
type SMTP struct {
	Address  string `hidden:"" help:"HOST:PORT of the mail server; without one, mail with its links is written to the log."`
	From     string `hidden:"" help:"Sender of the service's mail."`
	Username string `hidden:"" help:"User name at the mail server; empty means none."`
	Password string `hidden:"" help:"Password at the mail server." secret:"all"`
	TLS      string `name:"tls" hidden:"" help:"starttls, tls, or none for a server on this machine." default:"starttls" enum:"starttls,tls,none"`
}

// OIDC has the settings for signing in with an OpenID provider.
type OIDC struct {
	Name         string `hidden:"" help:"Name of the provider on the sign-in page and in sign_in_provider." default:"oidc"`
	Issuer       string `hidden:"" help:"Issuer URL of the OpenID provider; empty means none."`
	ClientID     string `name:"client-id" hidden:"" help:"Client id at the provider."`
	ClientSecret string `hidden:"" help:"Client secret at the provider." secret:"all"`
}

// Device has the settings for the device authorization flow (RFC 8628).
type Device struct {
	ExpiresIn   Span `hidden:"" help:"How long a code can be approved." default:"600s" least:"1"`
	Interval    Span `hidden:"" help:"Shortest interval between polls." default:"5s" least:"1"`
	MaxInterval Span `hidden:"" help:"Longest interval between polls." default:"60s" least:"1"`

	Grants           int `hidden:"" help:"Maximum number of pending sign-ins; above it the oldest of the network with the most expires." default:"50000" least:"1"`
	GrantsPerNetwork int `hidden:"" help:"Maximum number of pending sign-ins per network; above it the oldest expires." default:"200" least:"1"`
}

// Credentials has the lifetimes of ID tokens and refresh tokens.
type Credentials struct {
	IDLifetime         Span `name:"id-lifetime" hidden:"" help:"Lifetime of an ID token." default:"3600s" least:"1"`
	WebLifetime        Span `hidden:"" help:"Lifetime of the token that the pages of the studio use." default:"600s" least:"1"`
	RefreshRotateAfter Span `hidden:"" help:"Age at which a refresh token is replaced." default:"24h" least:"0"`
	RefreshGrace       Span `hidden:"" help:"How long a replaced refresh token remains valid." default:"60s" least:"0"`
}

// Tokens has the amounts of tokens that accounts receive. Tokens are the
// currency with which accounts pay for runs.
type Tokens struct {
	SignupGrant      int64 `hidden:"" help:"Tokens granted to a new person." default:"0" least:"0"`
	SetupGrant       int64 `hidden:"" help:"Additional tokens granted to the person who sets up the service." default:"1000" least:"0"`
	MonthlyAllowance int64 `hidden:"" help:"Free tokens per account and month." default:"0" least:"0"`
	TopUp            int64 `hidden:"" help:"Tokens of a free top-up; 0 turns it off." default:"0" least:"0"`
	TopUpWindow      Span  `hidden:"" help:"How often a top-up can be claimed." default:"24h" least:"1"`
}

// Runs has the settings for executing runs.
type Runs struct {
	PollMin Span `hidden:"" help:"Shortest polling interval sent to clients." default:"1s" least:"1"`
	PollMax Span `hidden:"" help:"Longest polling interval sent to clients." default:"10s" least:"1"`

	Parallel    int    `hidden:"" help:"Concurrent runs per engine on this node; 0 means the engine's default." default:"0" least:"0"`
	Lease       Span   `hidden:"" help:"Lease of a worker on a run; a run whose lease expires is claimed again." default:"30s" least:"1"`
	Retry       []Span `hidden:"" help:"Waits before the retries of a run after a transient engine failure." default:"1s,5s" least:"0"`
	Attempts    int    `hidden:"" help:"Number of workers that may die during a run before it fails." default:"2" least:"1"`
	MaxWait     Span   `hidden:"" help:"How long a run may wait for an engine." default:"24h" least:"1"`
	OutputBytes Size   `hidden:"" help:"Largest result." default:"1GB" least:"1"`

	PriorityStep   Span     `hidden:"" help:"Head start of a waiting run for each step of its priority; 0 turns priorities off." default:"1m" least:"0"`
	RolePriorities []string `hidden:"" help:"Priorities of the runs of team roles, -10 to 10 steps, such as manager=2 or COMPANY_ID/manager=2." placeholder:"ROLE=STEPS,…"`
}

// PrioritiesByRole returns the priorities of team roles by the name of the role,
// or by the id of a company, a slash and the name of the role.
func (r Runs) PrioritiesByRole() (map[string]int64, error) {
	all := map[string]int64{}
	for _, one := range r.RolePriorities {
		role, steps, ok := strings.Cut(one, "=")
		n, err := strconv.ParseInt(steps, 10, 64)
		if !ok || role == "" || err != nil || n < -10 || n > 10 {
			return nil, fmt.Errorf("%q must be ROLE=STEPS with -10 to 10 steps", one)
		}
		all[role] = n
	}
	return all, nil
}

// Engines has the settings for the engines that execute runs.
type Engines struct {
	Folder        string         `hidden:"" help:"Working folder of the engines' programs (default: the system's temporary folder)."`
	Threads       int            `hidden:"" help:"CPU cores used by the built-in picture model; 0 means all." default:"0" least:"0"`
	Soundfont     string         `hidden:"" help:"Soundfont for music (default: the installed one)."`
	Sandbox       string         `hidden:"" help:"Sandbox of the engines' programs: auto (if the system supports it), require, or off." default:"auto" enum:"auto,require,off"`
	Probe         Span           `hidden:"" help:"Interval between health checks of model servers." default:"15s" least:"1"`
	QueueTimeout  Span           `hidden:"" help:"How long a run may wait in the queue of its model server." default:"1h" least:"1"`
	AllowNetworks []netip.Prefix `hidden:"" help:"Private networks from which results of model servers may be fetched, in addition to the servers' own addresses."`
	Provenance    bool           `hidden:"" help:"Write the tool, seed and run into the metadata of pictures, videos and sound." default:"true" negatable:""`
	Prompts       bool           `hidden:"" help:"Write the prompt into the metadata as well." default:"false" negatable:""`
}

// Webhook has the settings for webhook delivery.
type Webhook struct {
	Timeout       Span           `hidden:"" help:"Longest wait for a receiver." default:"15s" least:"1"`
	RetrySchedule []Span         `hidden:"" help:"Waits before each retry." default:"5s,5m,30m,2h,5h,10h,10h" least:"0"`
	AllowNetworks []netip.Prefix `hidden:"" help:"Private networks in which receivers are allowed."`
	SecretOverlap Span           `hidden:"" help:"How long events are also signed with a replaced secret." default:"24h" least:"0"`
}

// Policy has the settings for the content policy.
type Policy struct {
	Rules           string `hidden:"" help:"File with deny rules; empty means the built-in rules, none means no rules."`
	ModerationURL   string `name:"moderation-url" hidden:"" help:"Moderation endpoint with the OpenAI API; empty means none."`
	ModerationKey   string `hidden:"" help:"Bearer key of the moderation endpoint." secret:"all"`
	ModerationModel string `hidden:"" help:"Model of the moderation endpoint; empty means its default."`
	Timeout         Span   `hidden:"" help:"Longest wait for the moderation endpoint." default:"10s" least:"1"`
}

// Retention has the ages at which data is deleted.
type Retention struct {
	Uploads Span `hidden:"" help:"Age at which uploads are deleted; 0 keeps them." default:"0s" least:"0"`
	Results Span `hidden:"" help:"Age at which results are deleted; 0 keeps them." default:"0s" least:"0"`
	Deleted Span `hidden:"" help:"How long a deleted result can be restored; 0 means not at all." default:"24h" least:"0"`
	Boards  Span `hidden:"" help:"How long a deleted board can be restored; 0 means forever." default:"720h" least:"0"`
	Runs    Span `hidden:"" help:"Time after the end of a run at which its inputs and results are erased; 0 keeps them." default:"0s" least:"0"`
	Events  Span `hidden:"" help:"Age at which the records of webhook deliveries are deleted; 0 keeps them." default:"0s" least:"0"`
	Orphans Span `hidden:"" help:"Age at which orphaned files are deleted." default:"1h" least:"1"`
	Every   Span `hidden:"" help:"Interval between the deletions of expired data." default:"10m" least:"1"`
}

// Storage has the limits on stored files and free disk space, in bytes.
type Storage struct {
	AccountBytes  Size `hidden:"" help:"Storage limit of an account that has no limit of its own; 0 means no limit." default:"20GB" least:"0"`
	TotalBytes    Size `hidden:"" help:"Storage limit of all accounts together; 0 means no limit." default:"0" least:"0"`
	MinFreeBytes  Size `hidden:"" help:"Free disk space below which uploads and runs are refused; 0 turns this off." default:"1GB" least:"0"`
	WarnFreeBytes Size `hidden:"" help:"Free disk space below which a warning is logged; 0 turns this off." default:"5GB" least:"0"`

	Presigned         bool   `hidden:"" help:"Send readers of files to the S3 server itself, with a URL that works for a short time." default:"false" negatable:""`
	PresignedURL      string `name:"presigned-url" hidden:"" help:"URL of the S3 server as clients reach it (default: the endpoint in blobs)."`
	PresignedLifetime Span   `hidden:"" help:"How long such a URL works, at most 15m." default:"1m" least:"1"`
}

// Uploads has the limits on resumable uploads.
type Uploads struct {
	UnfinishedFor Span `hidden:"" help:"How long an unfinished resumable upload is kept after its last bytes." default:"24h" least:"1"`
	Unfinished    int  `hidden:"" help:"Maximum number of unfinished resumable uploads of a person." default:"16" least:"1"`
}

// Media has the limits on media files and the settings for their URLs.
type Media struct {
	URL         string `name:"url" hidden:"" help:"URL that files are served from (default: --base-url); a separate host isolates them from the pages."`
	Pixels      int64  `hidden:"" help:"Largest picture, in pixels." default:"50000000" least:"1"`
	Frames      int    `hidden:"" help:"Maximum number of frames of an animation." default:"600" least:"1"`
	Duration    Span   `hidden:"" help:"Longest sound or video." default:"10m" least:"1"`
	URLLifetime Span   `name:"url-lifetime" hidden:"" help:"Lifetime of a signed URL." default:"168h" least:"1"`
}

// Memory has the memory limits for decoding pictures and for the shipped tools.
type Memory struct {
	Budget Size `hidden:"" help:"Memory budget for reading pictures and for the built-in image tools; 0 means half of the machine's or container's memory." default:"0" least:"0"`
	Wait   Span `hidden:"" help:"How long an upload may wait for memory before it is answered with 503." default:"20s" least:"1"`
}

// Reporting has the settings for access to reports.
type Reporting struct {
	OAuth string `name:"oauth" hidden:"" help:"Reports for ID tokens: allow or refuse." default:"allow" enum:"allow,refuse"`
}

// OpenAIDoor has the settings of the OpenAI-compatible interface under /v1.
type OpenAIDoor struct {
	Enabled  bool `hidden:"" help:"Serve the OpenAI-compatible interface under /v1." default:"true" negatable:""`
	Wait     Span `hidden:"" help:"How long a response under /v1 waits for the end of its run. The run goes on after that." default:"10m" least:"1"`
	KeepRuns bool `hidden:"" help:"Let a run go on when its client under /v1 leaves. Otherwise it is cancelled." default:"false" negatable:""`
}

// OAuth has the settings of the authorization of apps of third parties.
type OAuth struct {
	Enabled      bool `hidden:"" help:"Let people sign in to apps of others, such as assistants, with OAuth." default:"true" negatable:""`
	Registration bool `hidden:"" help:"Let apps register themselves. Registered apps keep working without it." default:"true" negatable:""`
}

// MCPDoor has the settings of the Model Context Protocol at /mcp.
type MCPDoor struct {
	Enabled     bool     `hidden:"" help:"Serve the Model Context Protocol at /mcp." default:"true" negatable:""`
	Wait        Span     `hidden:"" help:"How long a response at /mcp waits for the end of its run. The run goes on after that. Many clients give up after a minute." default:"50s" least:"1"`
	Kits        []string `hidden:"" help:"Kits whose tools are listed at /mcp to clients that choose none; empty means all tools." placeholder:"KIT,…"`
	MaxTools    int      `name:"max-tools" hidden:"" help:"How many tools are listed at /mcp if no kit is chosen." default:"50" least:"0"`
	InlineBytes Size     `name:"inline-bytes" hidden:"" help:"Size up to which pictures, sound and texts are part of a response at /mcp, all together; further results are links with a thumbnail. Some clients accept no response above 1 MB, and files grow by a third in it." default:"700KB" least:"0"`
	BodyBytes   Size     `name:"body-bytes" hidden:"" help:"Maximum size of a request to /mcp, with the files in it." default:"16MB" least:"1"`
}

// HasRole reports whether this process has the role "api" or "worker".
func (c *Config) HasRole(role string) bool { return slices.Contains(c.Roles, role) }

// ServesPool reports whether this process executes runs of the engines in a
// pool, if it is a worker.
func (c *Config) ServesPool(name string) bool {
	return len(c.Pools) == 0 || slices.Contains(c.Pools, name)
}

// DatabaseURL returns the URL of the database: the setting, or by default a
// SQLite file inside the data folder.
func (c *Config) DatabaseURL() string {
	if c.Database != "" {
		return c.Database
	}
	return "sqlite://" + c.inData("atelier.db")
}

// BlobsURL returns the URL of the file storage: the setting, or by default a
// folder inside the data folder.
func (c *Config) BlobsURL() string {
	if c.Blobs != "" {
		return c.Blobs
	}
	return "file://" + c.inData("blobs")
}

// SecretFile returns the path of the file with the installation's secret, which
// is used if the secret is not in the settings.
func (c *Config) SecretFile() string { return c.inData("keys", "secret") }

func (c *Config) inData(name ...string) string {
	path := filepath.Join(append([]string{c.Data}, name...)...)
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// HasTLS reports whether the program itself serves HTTPS.
func (c *Config) HasTLS() bool { return c.HTTP.TLSCert != "" || len(c.HTTP.ACMEDomains) > 0 }

// NamesLocalhost reports whether URLs in responses and mail will contain
// localhost although the program accepts connections from other machines.
func (c *Config) NamesLocalhost() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	return err == nil && c.BaseURL == "" && len(c.HTTP.ACMEDomains) == 0 && isUnspecified(host)
}

func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.Unmap().IsUnspecified()
}

// FillAddresses derives the public URLs that are not set from the listening
// address.
func (c *Config) FillAddresses(listen string) {
	if c.BaseURL == "" {
		c.BaseURL = c.ownURL(listen)
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.AppURL == "" {
		c.AppURL = c.BaseURL
	}
	c.AppURL = strings.TrimRight(c.AppURL, "/")
	if c.Media.URL == "" {
		c.Media.URL = c.BaseURL
	}
	c.Media.URL = strings.TrimRight(c.Media.URL, "/")
}

// ownURL returns the URL of the program for clients that connect without a
// proxy.
func (c *Config) ownURL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	ip, err := netip.ParseAddr(host)
	if isUnspecified(host) || err == nil && ip.IsLoopback() {
		host = "localhost"
	}
	if len(c.HTTP.ACMEDomains) > 0 {
		host = c.HTTP.ACMEDomains[0]
	}
	switch {
	case !c.HasTLS():
		return "http://" + net.JoinHostPort(host, port)
	case port == "443":
		return "https://" + host
	}
	return "https://" + net.JoinHostPort(host, port)
}

// CheckSettings returns an error that lists all invalid settings. It is not
// called Validate, because kong would call a method of that name itself, before
// it is known where each value comes from.
func (c *Config) CheckSettings() error {
	var problems Problems
	bad := func(name, format string, args ...any) {
		problems = append(problems, Problem{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	if c.Data == "" {
		bad("data", "must name a folder")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		bad("listen", "must be HOST:PORT")
	}
	if c.Metrics.Listen != "off" {
		if _, _, err := net.SplitHostPort(c.Metrics.Listen); err != nil {
			bad("metrics.listen", "must be HOST:PORT or off")
		}
	}
	for name, address := range map[string]string{"base_url": c.BaseURL, "app_url": c.AppURL, "trace.endpoint": c.Trace.Endpoint, "oidc.issuer": c.OIDC.Issuer, "media.url": c.Media.URL, "policy.moderation_url": c.Policy.ModerationURL, "storage.presigned_url": c.Storage.PresignedURL} {
		if u, err := url.Parse(address); address != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
			bad(name, "must be an http:// or https:// address")
		}
	}
	if c.SMTP.Address != "" {
		if _, _, err := net.SplitHostPort(c.SMTP.Address); err != nil {
			bad("smtp.address", "must be HOST:PORT")
		}
		if _, err := mail.ParseAddress(c.SMTP.From); err != nil {
			bad("smtp.from", "must be an e-mail address")
		}
	}
	if c.OIDC.Issuer != "" && c.OIDC.ClientID == "" {
		bad("oidc.client_id", "is required if oidc.issuer is set")
	}
	if c.OIDC.Name == "" || c.OIDC.Name == "password" {
		bad("oidc.name", `must not be empty or "password"`)
	}
	for _, address := range c.Operators {
		if a, err := mail.ParseAddress(address); err != nil || a.Address != address {
			bad("operators", "%q is not an e-mail address", address)
		}
	}
	if len(c.Roles) == 0 {
		bad("roles", "must contain api, worker or both")
	}
	for _, r := range c.Roles {
		if r != "api" && r != "worker" {
			bad("roles", "%q is neither api nor worker", r)
		}
	}
	if _, err := c.Runs.PrioritiesByRole(); err != nil {
		bad("runs.role_priorities", "%v", err)
	}
	for _, name := range c.Pools {
		if !isPoolName(name) {
			bad("pools", "%q is not the name of a pool", name)
		}
	}
	if c.Trace.Sample < 0 || c.Trace.Sample > 1 {
		bad("trace.sample", "must be between 0 and 1")
	}
	c.eachNumber(func(name string, n int64, least string) {
		if least == "1" && n <= 0 {
			bad(name, "must be above 0")
		}
		if least == "0" && n < 0 {
			bad(name, "must not be negative")
		}
	})
	if c.Limits.PageDefault > c.Limits.PageSize || c.Limits.ToolsPageDefault > c.Limits.PageSize {
		bad("limits.page_size", "must be at least limits.page_default and limits.tools_page_default")
	}
	if c.Runs.PollMin > c.Runs.PollMax {
		bad("runs.poll_min", "must be at most runs.poll_max")
	}
	if total := time.Duration(c.Shutdown.Delay + c.Shutdown.Timeout); total > 30*time.Second {
		bad("shutdown.timeout", "the sum of shutdown.timeout and shutdown.delay must be at most 30s")
	}
	if c.Pool.IdleConnections > c.Connections {
		bad("database.idle_connections", "must be at most connections")
	}
	if address := c.Pool.Replica; address != "" {
		if !isPostgres(address) {
			bad("database.replica", "must have the form postgres://…")
		} else if !isPostgres(c.DatabaseURL()) {
			bad("database.replica", "requires database to be a postgres:// address")
		}
	}
	if c.Storage.Presigned && !strings.HasPrefix(c.BlobsURL(), "s3:") {
		bad("storage.presigned", "requires blobs to be an s3:// address")
	}
	if life := time.Duration(c.Storage.PresignedLifetime); life < time.Second || life > 15*time.Minute {
		bad("storage.presigned_lifetime", "must be between 1s and 15m")
	}
	c.validateHTTP(bad)
	return problems.asError()
}

// isPostgres reports whether address is the URL of a PostgreSQL database.
func isPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// eachNumber calls fn with every numeric setting: its name, its value and its
// struct tag "least". For a list, the value is the lowest number in it, but at
// most 0.
func (c *Config) eachNumber(fn func(name string, n int64, least string)) {
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			field := v.Type().Field(i)
			value := v.Field(i)
			if sub, ok := field.Tag.Lookup("prefix"); ok {
				walk(prefix+sub, value)
				continue
			}
			name := prefix + settingName(field)
			least := field.Tag.Get("least")
			switch {
			case value.CanInt():
				fn(name, value.Int(), least)
			case value.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Int64:
				lowest := int64(0)
				for i := range value.Len() {
					lowest = min(lowest, value.Index(i).Int())
				}
				fn(name, lowest, least)
			}
		}
	}
	walk("", reflect.ValueOf(c).Elem())
}

// settingName returns the name of the setting in a field of Config: the struct
// tag "name" or, by default, the field's name in snake case.
func settingName(f reflect.StructField) string {
	if name, ok := f.Tag.Lookup("name"); ok {
		return Name(name)
	}
	var b strings.Builder
	for i, r := range f.Name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
