package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"atelier/internal/config"
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
	return c.Config, sources.Settings(k, &c.Config), c.Config.Validate()
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
		"webhook.timeout": "15s", "webhook.retry_schedule": "5s,5m0s,30m0s,2h0m0s,5h0m0s,10h0m0s,10h0m0s", "webhook.secret_overlap": "24h0m0s",
		"webhook.allow_networks": "", "signup": "open", "reporting.oauth": "allow", "require_verified_email": "false",
		"roles": "api,worker", "data": "./data",
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
		{"unknown in file", "limits: {activ_runs: 3}", nil, "atelier.yaml:1: limits.activ_runs is not a setting"},
		{"twice in file", "signup: open\nsignup: closed", nil, "atelier.yaml:2: signup stands here twice"},
		{"twice by another spelling", "limits: {active_runs: 1}\nlimits.active_runs: 2", nil, "atelier.yaml:2: limits.active_runs stands here twice"},
		{"no yaml", "a: [", nil, "did not find"},
		{"list of lists", "roles: [[api]]", nil, "must be a list of plain values"},
		{"no number", "", []string{"--limits.active-runs=many"}, "limits.active-runs"},
		{"no span", "", []string{"--device.interval=soon"}, "not a length of time"},
		{"no size", "", []string{"--limits.file-bytes=big"}, "not a number of bytes"},
		{"no word", "", []string{"--signup=maybe"}, `"open","invite","closed"`},
		{"zero", "", []string{"--limits.active-runs=0"}, "limits.active_runs: must be above 0"},
		{"negative grant", "", []string{"--tokens.signup-grant=-1"}, "tokens.signup_grant: must not be below 0"},
		{"negative retry", "", []string{"--webhook.retry-schedule=5s,-1s"}, "webhook.retry_schedule: must not be below 0"},
		{"negative bytes", "", []string{"--limits.json-bytes=-1"}, "not a number of bytes"},
		{"no time", "", []string{"--tokens.id-lifetime=0"}, "tokens.id_lifetime: must be above 0"},
		{"roles", "", []string{"--roles=api,cook"}, `roles: "cook" is neither`},
		{"base url", "", []string{"--base-url=example.com"}, "base_url: must be an http"},
		{"base url with a query", "", []string{"--base-url=http://x/?a"}, "base_url: must be an http"},
		{"listen", "", []string{"--listen=8080"}, "listen: must be HOST:PORT"},
		{"network", "", []string{"--webhook.allow-networks=10.0.0.0"}, "webhook.allow-networks"},
		{"long shutdown", "", []string{"--shutdown.timeout=60s"}, "at most 30s"},
		{"pages", "", []string{"--limits.page-size=10"}, "limits.page_size: must not be below"},
		{"missing file", "", []string{"--config=/nowhere.yaml"}, "settings file"},
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
		cfg.Fill(c.listen)
		if cfg.BaseURL != c.wantBase || cfg.AppURL != c.wantBase {
			t.Errorf("%s with %q: base %s, app %s, want %s", c.listen, c.base, cfg.BaseURL, cfg.AppURL, c.wantBase)
		}
	}
}
