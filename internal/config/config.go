// Package config holds every setting of the program.
//
// A setting comes from its default, the YAML file, the environment or a flag;
// the later one counts. Its name is the same everywhere: limits.active_runs in
// the file, ATELIER_LIMITS_ACTIVE_RUNS in the environment and
// --limits.active-runs (or --limits.active_runs) as a flag.
//
// Parts of the program receive their own small structs; only cmd knows this
// package.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Config is all settings. Those marked hidden work like the others and are
// listed by "atelier config" instead of each command's help.
type Config struct {
	Config   string   `help:"YAML file with settings." placeholder:"FILE"`
	Data     string   `help:"Folder of the embedded database, files and keys." default:"./data" placeholder:"DIR"`
	Database string   `help:"sqlite:///path or postgres://… (default: inside --data)." placeholder:"URL" secret:"url"`
	Blobs    string   `help:"file:///dir or s3://bucket?endpoint=… (default: inside --data)." placeholder:"URL"`
	Listen   string   `help:"Address to serve on." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	BaseURL  string   `name:"base-url" help:"Address that callers use (default: from --listen)." placeholder:"URL"`
	AppURL   string   `name:"app-url" help:"Address of the sign-in pages (default: --base-url)." placeholder:"URL"`
	Tools    string   `help:"Folder with manifests of your own tools." placeholder:"DIR"`
	Roles    []string `help:"What this process does: api, worker or both." default:"api,worker" placeholder:"ROLE,…"`

	Secret      string `hidden:"" help:"Secret shared by all nodes, 32 random bytes in base64 (default: a file inside --data)." secret:"all"`
	Connections int    `hidden:"" help:"Most connections to the database." default:"16"`
	Signup      string `hidden:"" help:"Who may sign up: open, invite or closed." default:"open" enum:"open,invite,closed"`

	RequireVerifiedEmail bool `hidden:"" help:"Refuse people whose mail address is not verified." default:"false" negatable:""`

	Log       Log       `embed:"" prefix:"log."`
	Metrics   Metrics   `embed:"" prefix:"metrics."`
	Trace     Trace     `embed:"" prefix:"trace."`
	HTTP      HTTP      `embed:"" prefix:"http."`
	Shutdown  Shutdown  `embed:"" prefix:"shutdown."`
	S3        S3        `embed:"" prefix:"s3."`
	Catalog   Catalog   `embed:"" prefix:"catalog."`
	Limits    Limits    `embed:"" prefix:"limits."`
	Device    Device    `embed:"" prefix:"device."`
	Tokens    Tokens    `embed:"" prefix:"tokens."`
	Runs      Runs      `embed:"" prefix:"runs."`
	Webhook   Webhook   `embed:"" prefix:"webhook."`
	Media     Media     `embed:"" prefix:"media."`
	Reporting Reporting `embed:"" prefix:"reporting."`
}

// Log is how the program tells what it does.
type Log struct {
	Format string `hidden:"" help:"text, json, or auto: text on a terminal." default:"auto" enum:"auto,text,json"`
	Level  string `hidden:"" help:"The least that is logged." default:"info" enum:"debug,info,warn,error"`
}

// Metrics is where Prometheus reads.
type Metrics struct {
	Listen string `hidden:"" help:"Address of /metrics; off for none." default:"127.0.0.1:9464"`
}

// Trace is where OpenTelemetry traces go.
type Trace struct {
	Endpoint string  `hidden:"" help:"OTLP endpoint over HTTP; empty sends none."`
	Sample   float64 `hidden:"" help:"Share of requests that are traced, 0 to 1." default:"1"`
}

// HTTP is how clients are treated.
type HTTP struct {
	TrustedProxies []netip.Prefix `hidden:"" help:"Networks whose X-Forwarded-For is believed."`
	HeaderTimeout  Span           `hidden:"" help:"Longest wait for a request's headers." default:"5s"`
	BodyTimeout    Span           `hidden:"" help:"Longest wait for a small request's body." default:"30s"`
	WriteTimeout   Span           `hidden:"" help:"Longest time to take an answer." default:"60s"`
	IdleTimeout    Span           `hidden:"" help:"How long an unused connection is kept." default:"120s"`
	HeaderBytes    Size           `hidden:"" help:"Largest headers of a request." default:"64KB"`
}

// Shutdown is how the program ends.
type Shutdown struct {
	Delay   Span `hidden:"" help:"Time between not ready and closed, for load balancers to notice." default:"1s"`
	Timeout Span `hidden:"" help:"Longest time to finish what is going on." default:"25s"`
}

// S3 is how the S3 server knows us.
type S3 struct {
	AccessKey string `hidden:"" help:"Access key of the S3 server." secret:"all"`
	SecretKey string `hidden:"" help:"Secret key of the S3 server." secret:"all"`
}

// Catalog is how the tools are kept.
type Catalog struct {
	Builtin bool `hidden:"" help:"Offer the tools that ship with the program." default:"true" negatable:""`
	Refresh Span `hidden:"" help:"How often changes are looked for." default:"1s"`
}

// Limits bound what one caller can do.
type Limits struct {
	InputFiles           int  `hidden:"" help:"Input files of one run." default:"12"`
	FileBytes            Size `hidden:"" help:"Largest file." default:"50MB"`
	RequestBytes         Size `hidden:"" help:"Largest multipart request, files together." default:"250MB"`
	JSONBytes            Size `name:"json-bytes" hidden:"" help:"Largest JSON body." default:"1MB"`
	JSONDepth            int  `name:"json-depth" hidden:"" help:"Deepest JSON body." default:"64"`
	MetadataBytes        Size `hidden:"" help:"Largest metadata of a run." default:"8KB"`
	ActiveRuns           int  `hidden:"" help:"Runs one person may have going." default:"10"`
	CreatePerMinute      int  `hidden:"" help:"Runs one person may start in a minute." default:"10"`
	CreatePerHour        int  `hidden:"" help:"Runs one person may start in an hour." default:"100"`
	NumResults           int  `hidden:"" help:"Results of one run." default:"64"`
	RequestsPerMinute    int  `hidden:"" help:"Other calls of one person, or of one address without a person; 0 for any." default:"6000"`
	PageSize             int  `hidden:"" help:"Largest page of a list." default:"100"`
	PageDefault          int  `hidden:"" help:"Page of a list when the caller does not say." default:"24"`
	ToolsPageDefault     int  `hidden:"" help:"The same for the list of tools." default:"100"`
	IdempotencyKeyLength int  `hidden:"" help:"Longest Idempotency-Key." default:"255"`
	IdempotencyLifetime  Span `hidden:"" help:"How long an Idempotency-Key is kept." default:"24h"`
	IdempotencyWait      Span `hidden:"" help:"How long a second request waits for the first with its key." default:"10s"`
	PluginLength         int  `hidden:"" help:"Longest plugin name of a run." default:"64"`
	PluginKindLength     int  `hidden:"" help:"Longest plugin kind of a device." default:"32"`
}

// Device is the device flow.
type Device struct {
	ExpiresIn   Span `hidden:"" help:"How long a code can be approved." default:"600s"`
	Interval    Span `hidden:"" help:"Least time between polls." default:"5s"`
	MaxInterval Span `hidden:"" help:"Where doubling the interval ends." default:"60s"`
}

// Tokens are the credentials that expire, and the tokens people pay with.
type Tokens struct {
	IDLifetime         Span  `name:"id-lifetime" hidden:"" help:"How long an ID token works." default:"3600s"`
	RefreshRotateAfter Span  `hidden:"" help:"Age at which a refresh token is replaced." default:"24h"`
	RefreshGrace       Span  `hidden:"" help:"How long a replaced refresh token still works." default:"60s"`
	SignupGrant        int64 `hidden:"" help:"Tokens a new person gets." default:"0"`
	MonthlyAllowance   int64 `hidden:"" help:"Free tokens per account and month." default:"0"`
	TopUp              int64 `hidden:"" help:"Tokens of a free top-up; 0 turns it off." default:"0"`
	TopUpWindow        Span  `hidden:"" help:"How often a top-up can be claimed." default:"24h"`
}

// Runs are how callers wait for results.
type Runs struct {
	PollMin Span `hidden:"" help:"Shortest wait that a poll is told." default:"1s"`
	PollMax Span `hidden:"" help:"Longest wait that a poll is told." default:"10s"`
}

// Webhook is how events are delivered.
type Webhook struct {
	Timeout       Span           `hidden:"" help:"Longest wait for a receiver." default:"15s"`
	RetrySchedule []Span         `hidden:"" help:"Waits before each retry." default:"5s,5m,30m,2h,5h,10h,10h"`
	AllowNetworks []netip.Prefix `hidden:"" help:"Private networks that receivers may be in."`
	SecretOverlap Span           `hidden:"" help:"How long a replaced secret signs along." default:"24h"`
}

// Media is what results look like from outside.
type Media struct {
	URLLifetime Span `name:"url-lifetime" hidden:"" help:"How long a signed address works." default:"168h"`
}

// Reporting is who may read reports.
type Reporting struct {
	OAuth string `name:"oauth" hidden:"" help:"Reports for ID tokens: allow or refuse." default:"allow" enum:"allow,refuse"`
}

// Has tells whether this process has a role.
func (c *Config) Has(role string) bool { return slices.Contains(c.Roles, role) }

// DatabaseURL is where the database is, given or inside the data folder.
func (c *Config) DatabaseURL() string {
	if c.Database != "" {
		return c.Database
	}
	return "sqlite://" + c.inData("atelier.db")
}

// BlobsURL is where files are, given or inside the data folder.
func (c *Config) BlobsURL() string {
	if c.Blobs != "" {
		return c.Blobs
	}
	return "file://" + c.inData("blobs")
}

// SecretFile is where the secret is when no setting has it.
func (c *Config) SecretFile() string { return c.inData("keys", "secret") }

func (c *Config) inData(name ...string) string {
	path := filepath.Join(append([]string{c.Data}, name...)...)
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Fill sets the addresses that follow from where the program listens.
func (c *Config) Fill(listen string) {
	if c.BaseURL == "" {
		host, port, err := net.SplitHostPort(listen)
		if ip, bad := netip.ParseAddr(host); err == nil && (host == "" || bad == nil && (ip.IsUnspecified() || ip.IsLoopback())) {
			host = "localhost"
		}
		c.BaseURL = "http://" + net.JoinHostPort(host, port)
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.AppURL == "" {
		c.AppURL = c.BaseURL
	}
	c.AppURL = strings.TrimRight(c.AppURL, "/")
}

// Validate reports every setting that cannot be.
func (c *Config) Validate() error {
	var problems []error
	bad := func(name, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
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
	for name, address := range map[string]string{"base_url": c.BaseURL, "app_url": c.AppURL, "trace.endpoint": c.Trace.Endpoint} {
		if u, err := url.Parse(address); address != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
			bad(name, "must be an http:// or https:// address")
		}
	}
	if len(c.Roles) == 0 {
		bad("roles", "must name api, worker or both")
	}
	for _, r := range c.Roles {
		if r != "api" && r != "worker" {
			bad("roles", "%q is neither api nor worker", r)
		}
	}
	if c.Trace.Sample < 0 || c.Trace.Sample > 1 {
		bad("trace.sample", "must be between 0 and 1")
	}
	for name, n := range map[string]int64{
		"connections": int64(c.Connections), "limits.input_files": int64(c.Limits.InputFiles), "limits.file_bytes": int64(c.Limits.FileBytes),
		"limits.request_bytes": int64(c.Limits.RequestBytes), "limits.json_bytes": int64(c.Limits.JSONBytes), "limits.json_depth": int64(c.Limits.JSONDepth),
		"limits.metadata_bytes": int64(c.Limits.MetadataBytes), "limits.active_runs": int64(c.Limits.ActiveRuns),
		"limits.create_per_minute": int64(c.Limits.CreatePerMinute), "limits.create_per_hour": int64(c.Limits.CreatePerHour),
		"limits.num_results": int64(c.Limits.NumResults), "limits.page_size": int64(c.Limits.PageSize), "limits.page_default": int64(c.Limits.PageDefault),
		"limits.tools_page_default": int64(c.Limits.ToolsPageDefault), "limits.idempotency_key_length": int64(c.Limits.IdempotencyKeyLength),
		"limits.plugin_length": int64(c.Limits.PluginLength), "limits.plugin_kind_length": int64(c.Limits.PluginKindLength),
		"http.header_bytes": int64(c.HTTP.HeaderBytes), "http.header_timeout": int64(c.HTTP.HeaderTimeout), "http.body_timeout": int64(c.HTTP.BodyTimeout),
		"http.write_timeout": int64(c.HTTP.WriteTimeout), "http.idle_timeout": int64(c.HTTP.IdleTimeout), "shutdown.timeout": int64(c.Shutdown.Timeout),
		"catalog.refresh": int64(c.Catalog.Refresh), "device.expires_in": int64(c.Device.ExpiresIn), "device.interval": int64(c.Device.Interval),
		"device.max_interval": int64(c.Device.MaxInterval), "tokens.id_lifetime": int64(c.Tokens.IDLifetime), "tokens.top_up_window": int64(c.Tokens.TopUpWindow),
		"runs.poll_min": int64(c.Runs.PollMin), "runs.poll_max": int64(c.Runs.PollMax), "webhook.timeout": int64(c.Webhook.Timeout),
		"media.url_lifetime": int64(c.Media.URLLifetime), "limits.idempotency_lifetime": int64(c.Limits.IdempotencyLifetime),
	} {
		if n <= 0 {
			bad(name, "must be above 0")
		}
	}
	for name, n := range map[string]int64{
		"limits.requests_per_minute": int64(c.Limits.RequestsPerMinute), "limits.idempotency_wait": int64(c.Limits.IdempotencyWait),
		"tokens.refresh_rotate_after": int64(c.Tokens.RefreshRotateAfter), "tokens.refresh_grace": int64(c.Tokens.RefreshGrace),
		"tokens.signup_grant": c.Tokens.SignupGrant, "tokens.monthly_allowance": c.Tokens.MonthlyAllowance, "tokens.top_up": c.Tokens.TopUp,
		"webhook.secret_overlap": int64(c.Webhook.SecretOverlap), "shutdown.delay": int64(c.Shutdown.Delay),
	} {
		if n < 0 {
			bad(name, "must not be below 0")
		}
	}
	if c.Limits.PageDefault > c.Limits.PageSize || c.Limits.ToolsPageDefault > c.Limits.PageSize {
		bad("limits.page_size", "must not be below limits.page_default and limits.tools_page_default")
	}
	if c.Runs.PollMin > c.Runs.PollMax {
		bad("runs.poll_min", "must not be above runs.poll_max")
	}
	if total := time.Duration(c.Shutdown.Delay + c.Shutdown.Timeout); total > 30*time.Second {
		bad("shutdown.timeout", "with shutdown.delay must be at most 30s")
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}
