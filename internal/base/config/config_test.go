package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"atelier/internal/base/config"
)

// parse reads settings as the program does.
func parse(t *testing.T, file string, env map[string]string, args ...string) (config.Config, []config.Setting, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "atelier.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	var c struct {
		config.Config `embed:""`
		Serve         struct{} `cmd:""`
	}
	sources, err := config.NewSources(args, func(name string) string { return env[name] })
	if err != nil {
		return c.Config, nil, err
	}
	parser, err := kong.New(&c, kong.Resolvers(sources), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	k, err := parser.Parse(config.FlagNames(append([]string{"serve"}, args...)))
	if err != nil {
		return c.Config, nil, err
	}
	return c.Config, sources.Settings(k, &c.Config), sources.Locate(k, c.Config.CheckSettings())
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	c, all, err := parse(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range all {
		got[s.Name] = s.Value
		if s.Source != "default" || s.Help == "" {
			t.Errorf("%s has source %q and help %q", s.Name, s.Source, s.Help)
		}
	}
	for name, want := range map[string]string{
		"limits.input_files": "12", "limits.file_bytes": "50MB", "limits.request_bytes": "250MB", "limits.metadata_bytes": "8KB",
		"limits.json_bytes": "1MB", "limits.json_depth": "64", "limits.active_runs": "10", "limits.create_per_minute": "10",
		"limits.create_per_hour": "100", "limits.num_results": "64", "limits.page_size": "100", "limits.page_default": "24",
		"limits.tools_page_default": "100", "limits.idempotency_key_length": "255", "limits.idempotency_lifetime": "24h0m0s",
		"limits.idempotency_wait": "10s", "limits.plugin_length": "64", "limits.plugin_kind_length": "32",
		"device.expires_in": "10m0s", "device.interval": "5s", "device.max_interval": "1m0s",
		"tokens.id_lifetime": "1h0m0s", "tokens.refresh_rotate_after": "24h0m0s", "tokens.refresh_grace": "1m0s",
		"tokens.signup_grant": "0", "tokens.setup_grant": "1000", "tokens.monthly_allowance": "0", "tokens.top_up": "0",
		"runs.poll_min": "1s", "runs.poll_max": "10s", "media.url_lifetime": "168h0m0s",
		"uploads.unfinished_for": "24h0m0s", "uploads.unfinished": "16",
		"webhook.timeout": "15s", "webhook.retry_schedule": "5s,5m0s,30m0s,2h0m0s,5h0m0s,10h0m0s,10h0m0s", "webhook.secret_overlap": "24h0m0s",
		"webhook.allow_networks": "", "operators": "", "signup": "open", "reporting.oauth": "allow", "require_verified_email": "false",
		"roles": "api,worker", "data": "./data", "pools": "", "runs.priority_step": "1m0s", "runs.role_priorities": "",
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %q, want %q", name, v, want)
		}
	}
	if c.Limits.FileBytes != 52_428_800 || c.Limits.MetadataBytes != 8192 || time.Duration(c.Device.ExpiresIn) != 600*time.Second {
		t.Errorf("limits = %+v", c.Limits)
	}
}

func TestLaterSourcesCount(t *testing.T) {
	t.Parallel()
	file := "limits:\n  active_runs: 1\n  create_per_hour: 1\n  create_per_minute: 1\nroles: [api]\nwebhook.allow_networks: [10.0.0.0/8, 'fd00::/8']\ncatalog: {builtin: false}\n"
	env := map[string]string{"ATELIER_LIMITS_ACTIVE_RUNS": "2", "ATELIER_LIMITS_CREATE_PER_HOUR": "2", "ATELIER_DEVICE_EXPIRES_IN": "90", "ATELIER_SIGNUP": ""}
	c, all, err := parse(t, file, env, "--limits.active_runs=3", "--base_url", "https://x_y.example")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]config.Setting{}
	for _, s := range all {
		got[s.Name] = s
	}
	for name, want := range map[string]string{
		"limits.active_runs": "3 flag", "limits.create_per_hour": "2 environment", "limits.create_per_minute": "1 file", "limits.num_results": "64 default",
		"roles": "api file", "webhook.allow_networks": "10.0.0.0/8,fd00::/8 file", "device.expires_in": "1m30s environment", "signup": "open default",
		"base_url": "https://x_y.example flag", "catalog.builtin": "false file",
	} {
		if have := got[name].Value + " " + got[name].Source; have != want {
			t.Errorf("%s = %s, want %s", name, have, want)
		}
	}
	if c.Limits.ActiveRuns != 3 || len(c.Webhook.AllowNetworks) != 2 || c.Catalog.Builtin {
		t.Errorf("config = %+v", c)
	}
}

// TestEverySecretIsHidden sets each setting whose name says that it holds a
// secret, and each that is marked as one, to a marker.
func TestEverySecretIsHidden(t *testing.T) {
	t.Parallel()
	const marker = "Zm9vYmFyLXNlY3JldA"
	_, names, err := parse(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ATELIER_DATABASE": "postgres://me:" + marker + "@db.example/x?sslpassword=" + marker}
	secrets := 0
	for _, s := range names {
		named := strings.Contains(s.Name, "secret") || strings.Contains(s.Name, "password") || strings.HasSuffix(s.Name, "_key")
		isFile := s.Name == "http.tls_key" // the path of a file
		isDuration := s.Name == "webhook.secret_overlap"
		if named && !isFile && !isDuration && !s.Secret {
			t.Errorf("%s is not marked as a secret", s.Name)
		}
		if s.Secret {
			secrets++
			env[config.Variable(s.Name)] = marker
		}
	}
	if secrets < 6 {
		t.Errorf("%d settings are secrets, want six or more", secrets)
	}

	_, all, err := parse(t, "", env)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if strings.Contains(s.Value, marker) {
			t.Errorf("%s shows its secret: %s", s.Name, s.Value)
		}
		if s.Secret && !s.IsSet {
			t.Errorf("%s is not set", s.Name)
		}
	}
}

func TestOperatorsAreAddresses(t *testing.T) {
	t.Parallel()
	c, _, err := parse(t, "operators: [anna@example.com, bert@example.com]\n", nil)
	if err != nil || len(c.Operators) != 2 {
		t.Errorf("operators = %v, %v", c.Operators, err)
	}
	for _, wrong := range []string{"anna", "Anna <anna@example.com>", "anna@example.com,*"} {
		if _, _, err := parse(t, "", map[string]string{"ATELIER_OPERATORS": wrong}); err == nil || !strings.Contains(err.Error(), "operators: ") {
			t.Errorf("operators %q = %v, want them refused", wrong, err)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	_, all, err := parse(t, "secret: hunter2\n", map[string]string{"ATELIER_S3_SECRET_KEY": "hunter2", "ATELIER_S3_ACCESS_KEY": "hunter2"},
		"--database", "postgres://me:hunter2@db.example/x?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if strings.Contains(s.Value, "hunter2") {
			t.Errorf("%s shows its secret: %s", s.Name, s.Value)
		}
		if s.Name == "database" && s.Value != "postgres://me:********@db.example/x?sslmode=disable" {
			t.Errorf("database = %s", s.Value)
		}
	}
	_, all, err = parse(t, "", nil, "--database", "postgres:///x?host=/run&password=hunter2")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if strings.Contains(s.Value, "hunter2") {
			t.Errorf("%s shows its secret: %s", s.Name, s.Value)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file string
		args       []string
		want       string
	}{
		{"unknown in file", "limits: {activ_runs: 3}", nil, "atelier.yaml:1: limits.activ_runs: is not a setting; did you mean limits.active_runs?"},
		{"twice in file", "signup: open\nsignup: closed", nil, "atelier.yaml:2: signup is set twice"},
		{"twice by another spelling", "limits: {active_runs: 1}\nlimits.active_runs: 2", nil, "atelier.yaml:2: limits.active_runs is set twice"},
		{"no yaml", "a: [", nil, "did not find"},
		{"list of lists", "roles: [[api]]", nil, "must be a list of plain values"},
		{"no number", "", []string{"--limits.active-runs=many"}, "limits.active-runs"},
		{"no span", "", []string{"--device.interval=soon"}, "not a duration"},
		{"no size", "", []string{"--limits.file-bytes=big"}, "not a number of bytes"},
		{"no word", "", []string{"--signup=maybe"}, `"open","invite","closed"`},
		{"zero", "", []string{"--limits.active-runs=0"}, "limits.active_runs: must be above 0"},
		{"negative grant", "", []string{"--tokens.signup-grant=-1"}, "tokens.signup_grant: must not be negative"},
		{"negative retry", "", []string{"--webhook.retry-schedule=5s,-1s"}, "webhook.retry_schedule: must not be negative"},
		{"negative bytes", "", []string{"--limits.json-bytes=-1"}, "not a number of bytes"},
		{"no time", "", []string{"--tokens.id-lifetime=0"}, "tokens.id_lifetime: must be above 0"},
		{"roles", "", []string{"--roles=api,cook"}, `roles: "cook" is neither`},
		{"pools", "", []string{"--pools=gpu,GPU"}, `pools: "GPU" is not the name of a pool`},
		{"priority without steps", "runs: {role_priorities: [manager]}", nil, `runs.role_priorities: "manager" must be ROLE=STEPS`},
		{"priority out of range", "runs: {role_priorities: [manager=11]}", nil, `runs.role_priorities: "manager=11" must be ROLE=STEPS`},
		{"base url", "", []string{"--base-url=example.com"}, "base_url: must be an http"},
		{"base url with a query", "", []string{"--base-url=http://x/?a"}, "base_url: must be an http"},
		{"listen", "", []string{"--listen=8080"}, "listen: must be HOST:PORT"},
		{"network", "", []string{"--webhook.allow-networks=10.0.0.0"}, "webhook.allow-networks"},
		{"long shutdown", "", []string{"--shutdown.timeout=60s"}, "at most 30s"},
		{"replica of a file", "", []string{"--database.replica=postgres://x/y"}, "database.replica: requires database to be a postgres:// address"},
		{"replica in a file", "", []string{"--database=postgres://x/y", "--database.replica=sqlite:///x"}, "database.replica: must have the form postgres://"},
		{"more idle than open", "", []string{"--database.idle-connections=17"}, "database.idle_connections: must be at most connections"},
		{"presigned in a folder", "", []string{"--storage.presigned"}, "storage.presigned: requires blobs to be an s3:// address"},
		{"presigned for long", "", []string{"--storage.presigned-lifetime=1h"}, "storage.presigned_lifetime: must be between 1s and 15m"},
		{"presigned at no address", "", []string{"--storage.presigned-url=files.example"}, "storage.presigned_url: must be an http"},
		{"pages", "", []string{"--limits.page-size=10"}, "limits.page_size: must be at least"},
		{"missing file", "", []string{"--config=/nowhere.yaml"}, "settings file"},
		{"certificate without key", "", []string{"--http.tls-cert=c.pem"}, "http.tls_key: is required if http.tls_cert is set"},
		{"key without certificate", "", []string{"--http.tls-key=k.pem"}, "http.tls_cert: is required if http.tls_key is set"},
		{"two sources of certificates", "", []string{"--http.tls-cert=c.pem", "--http.tls-key=k.pem", "--http.acme-domains=a.example"}, "http.acme_domains: cannot be used together with http.tls_cert"},
		{"domain with a wildcard", "", []string{"--http.acme-domains=*.a.example"}, `"*.a.example" is not a domain`},
		{"domain that is an address", "", []string{"--http.acme-domains=192.0.2.1"}, `"192.0.2.1" is not a domain`},
		{"domain with a scheme", "", []string{"--http.acme-domains=https://a.example"}, "is not a domain"},
		{"domain without a dot", "", []string{"--http.acme-domains=localhost"}, "is not a domain"},
		{"plain directory", "", []string{"--http.acme-directory=http://a.example/dir"}, "http.acme_directory: must be an https:// address"},
		{"email", "", []string{"--http.acme-email=me"}, "http.acme_email: must be an e-mail address"},
		{"redirect to nothing", "", []string{"--http.redirect-listen=:80"}, "http.redirect_listen: requires http.tls_cert or http.acme_domains"},
		{"plain base url", "", []string{"--http.acme-domains=a.example", "--base-url=http://a.example"}, "base_url: must be an https:// address"},
		{"any origin", "", []string{"--http.cors-origins=*"}, "http.cors_origins: must name each origin"},
		{"null origin", "", []string{"--http.cors-origins=null"}, `"null" is not an origin`},
		{"origin with a path", "", []string{"--http.cors-origins=https://a.example/"}, "is not an origin"},
		{"origin in capitals", "", []string{"--http.cors-origins=https://A.example"}, "is not an origin"},
		{"origin with its own port", "", []string{"--http.cors-origins=https://a.example:443"}, "is not an origin"},
		{"origin with a wildcard", "", []string{"--http.cors-origins=https://*.a.example"}, "is not an origin"},
		{"origin of files", "", []string{"--http.cors-origins=file://"}, "is not an origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := parse(t, c.file, nil, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
	_, _, err := parse(t, "", nil, "--listen=x", "--limits.active-runs=0", "--roles=cook")
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three mistakes give %v, want three lines", err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ listen, base, wantBase string }{
		{"127.0.0.1:8080", "", "http://localhost:8080"},
		{"0.0.0.0:80", "", "http://localhost:80"},
		{"[::]:80", "", "http://localhost:80"},
		{":80", "", "http://localhost:80"},
		{"192.0.2.7:80", "", "http://192.0.2.7:80"},
		{"127.0.0.1:8080", "https://a.example/", "https://a.example"},
	} {
		cfg := config.Config{BaseURL: c.base}
		cfg.FillAddresses(c.listen)
		if cfg.BaseURL != c.wantBase || cfg.AppURL != c.wantBase {
			t.Errorf("%s with %q: base %s, app %s, want %s", c.listen, c.base, cfg.BaseURL, cfg.AppURL, c.wantBase)
		}
	}
}

// TestSecureAddresses has the addresses follow from the certificates.
func TestSecureAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen  string
		args    []string
		want    string
		warning bool
	}{
		{"0.0.0.0:443", []string{"--http.acme-domains=a.example,b.example"}, "https://a.example", false},
		{"0.0.0.0:8443", []string{"--http.acme-domains=a.example"}, "https://a.example:8443", false},
		{"0.0.0.0:443", []string{"--http.tls-cert=c", "--http.tls-key=k"}, "https://localhost", true},
		{"127.0.0.1:8443", []string{"--http.tls-cert=c", "--http.tls-key=k"}, "https://localhost:8443", false},
		{"192.0.2.7:8443", []string{"--http.tls-cert=c", "--http.tls-key=k"}, "https://192.0.2.7:8443", false},
		{"0.0.0.0:8080", nil, "http://localhost:8080", true},
		{"[::]:8080", nil, "http://localhost:8080", true},
		{":8080", nil, "http://localhost:8080", true},
		{":8080", []string{"--base-url=https://a.example"}, "https://a.example", false},
		{"localhost:8080", nil, "http://localhost:8080", false},
		{"192.0.2.7:8080", nil, "http://192.0.2.7:8080", false},
	} {
		cfg, _, err := parse(t, "", nil, append(c.args, "--listen="+c.listen)...)
		if err != nil {
			t.Fatal(err)
		}
		warning := cfg.NamesLocalhost()
		cfg.FillAddresses(c.listen)
		if cfg.BaseURL != c.want || warning != c.warning {
			t.Errorf("%s %v: %s, warning %t, want %s, %t", c.listen, c.args, cfg.BaseURL, warning, c.want, c.warning)
		}
	}
}

// TestProblemsNameTheirPlace gives bad values in every way.
func TestProblemsNameTheirPlace(t *testing.T) {
	t.Parallel()
	file := "# settings\nlimits:\n  active_runs: many\n  page_sise: 3\nsignup: maybe\ndevice.interval: soon\ncatalog: {builtin: perhaps}\n" +
		"trace: {sample: half}\nlimit:\n  file_bytes: big\n"
	_, _, err := parse(t, file, map[string]string{"ATELIER_LIMITS_CREATE_PER_HOUR": "1.5", "ATELIER_WEBHOOK_ALLOW_NETWORKS": "10.0.0.0"})
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{
		`atelier.yaml:3: limits.active_runs: "many" is not a whole number`,
		`atelier.yaml:4: limits.page_sise: is not a setting; did you mean limits.page_size?`,
		`atelier.yaml:5: signup: must be one of open, invite, closed, not "maybe"`,
		`atelier.yaml:6: device.interval: "soon" is not a duration`,
		`atelier.yaml:7: catalog.builtin: "perhaps" is neither true nor false`,
		`atelier.yaml:8: trace.sample: "half" is not a number`,
		`atelier.yaml:10: limit.file_bytes: is not a setting; did you mean limits.file_bytes?`,
		`limits.create_per_hour: "1.5" is not a whole number (ATELIER_LIMITS_CREATE_PER_HOUR)`,
		`(ATELIER_WEBHOOK_ALLOW_NETWORKS)`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s\nin: %s", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 9 {
		t.Errorf("%d lines, want 9: %s", n, err)
	}

	// What is wrong only together with others, or in itself.
	_, _, err = parse(t, "limits:\n  active_runs: 0\n", map[string]string{"ATELIER_LISTEN": "nowhere"}, "--limits.page-size=10")
	for _, want := range []string{
		"atelier.yaml:2: limits.active_runs: must be above 0", "listen: must be HOST:PORT (ATELIER_LISTEN)", "limits.page_size: must be at least limits.page_default and limits.tools_page_default (--limits.page-size)",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
}

// TestUnknownVariables looks for variables that nothing reads.
func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	var c struct {
		config.Config `embed:""`
		Serve         struct{} `cmd:""`
		Generate      struct {
			Service string `env:"ATELIER_SERVICE"`
		} `cmd:""`
	}
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	got := config.UnknownVariables([]string{
		"PATH=/bin", "ATELIER_DATABASE=x", "ATELIER_DATBASE=secret", "ATELIER_LIMITS_ACTIV_RUNS=3", "ATELIER_SERVICE=x", "ATELIER_TOKEN=x", "ATELIER_TEST_PG=skip",
		"ATELIER_STUDIO_KEY=x", "ATELIER_WHATEVER=x", "ATELIER_CONFIG=x", "ATELIER_BASEURL=x", "ATELIER_OIDC_CLIENTID=x", "ATELIER_SINGUP=x", "NOT_ATELIER_X=1",
	}, parser.Model, []string{"ATELIER_STUDIO_KEY"})
	want := []string{
		"ATELIER_BASEURL is not a setting; did you mean ATELIER_BASE_URL?",
		"ATELIER_DATBASE is not a setting; did you mean ATELIER_DATABASE?",
		"ATELIER_LIMITS_ACTIV_RUNS is not a setting; did you mean ATELIER_LIMITS_ACTIVE_RUNS?",
		"ATELIER_OIDC_CLIENTID is not a setting; did you mean ATELIER_OIDC_CLIENT_ID?",
		"ATELIER_SINGUP is not a setting; did you mean ATELIER_SIGNUP?",
		"ATELIER_WHATEVER is not a setting",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTemplatesGiveTheDefaults loads the files to start from, as they are and with
// every line in force.
func TestTemplatesGiveTheDefaults(t *testing.T) {
	t.Parallel()
	var c struct {
		config.Config `embed:""`
	}
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	var file, environment strings.Builder
	if err := errors.Join(config.WriteYAML(&file, parser.Model), config.WriteEnvironment(&environment, parser.Model)); err != nil {
		t.Fatal(err)
	}
	_, defaults, err := parse(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^#([a-zA-Z_0-9.]+[:=])`)
	inForce := line.ReplaceAllString(file.String(), "$1")
	variables := map[string]string{}
	for entry := range strings.Lines(line.ReplaceAllString(environment.String(), "$1")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(entry), "="); ok && strings.HasPrefix(name, "ATELIER_") {
			variables[name] = value
		}
	}
	if len(variables) != len(defaults) || strings.Count(inForce, "\n") < 3*(len(defaults)-1) {
		t.Errorf("%d variables for %d settings", len(variables), len(defaults))
	}
	for what, load := range map[string]func() (config.Config, []config.Setting, error){
		"file":                 func() (config.Config, []config.Setting, error) { return parse(t, file.String(), nil) },
		"file in force":        func() (config.Config, []config.Setting, error) { return parse(t, inForce, nil) },
		"environment in force": func() (config.Config, []config.Setting, error) { return parse(t, "", variables) },
		"a group without lines": func() (config.Config, []config.Setting, error) {
			return parse(t, "limits:\n#  active_runs: 3\nsignup:\n", nil)
		},
	} {
		_, got, err := load()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for i, one := range got {
			if one.Value != defaults[i].Value && one.Name != "config" {
				t.Errorf("%s: %s = %q, the default is %q", what, one.Name, one.Value, defaults[i].Value)
			}
		}
	}
	for _, one := range defaults {
		if !strings.Contains(file.String(), "\n# "+one.Help+"\n#"+one.Name+": ") && one.Name != "config" {
			t.Errorf("the file lacks %s", one.Name)
		}
	}
}
