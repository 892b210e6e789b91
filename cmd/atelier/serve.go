package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"atelier/internal/base/config"
	"atelier/internal/base/cursor"
	"atelier/internal/base/dispatch"
	"atelier/internal/base/memory"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/telemetry"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/toolsync"
	"atelier/internal/operate/backgroundjobs"
	"atelier/internal/operate/metrics"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/node"
	"atelier/internal/web/access"
	"atelier/internal/web/api"
	"atelier/internal/web/api/mcp"
	"atelier/internal/web/api/operator"
	"atelier/internal/web/docs"
	"atelier/internal/web/httpd"
	"atelier/internal/web/pages"
	"atelier/internal/web/reference"
	"atelier/internal/web/scim"
	"atelier/internal/web/studio"
	"atelier/web"
)

type serveCmd struct{}

// Run opens all parts of the service in order, starts the background work and
// the server, and waits until they end.
func (serveCmd) Run(p *program) error {
	ctx := p.ctx
	cfg := p.cfg
	log, err := telemetry.Logger(p.stderr, cfg.Log.Format, cfg.Log.Level)
	if err != nil {
		return err
	}

	started := time.Now()
	memory.SetCollectorPercent()

	// Report the problems that can be found before anything is written.
	for _, warning := range p.unknownVariables() {
		log.Warn(warning)
	}
	if cfg.NamesLocalhost() {
		log.Warn("base_url is not set: links in responses, pages and mail will point to localhost; set --base-url to the public URL of the service", "listen", cfg.Listen)
	}
	if err := p.checkInstallation(); err != nil {
		return err
	}
	listeners, err := p.openListeners(log)
	if err != nil {
		return err
	}
	defer listeners.Close()
	cfg.FillAddresses(listeners.main.Addr().String())

	// Open the database, the keys and the files.
	if err := p.tightenFiles(); err != nil {
		return err
	}
	db, err := p.openMigrated(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := useReplica(ctx, db, cfg.Pool); err != nil {
		return err
	}
	keys, err := p.openKeys(ctx, db)
	if err != nil {
		return err
	}
	blobs, err := p.openBlobs(ctx)
	if err != nil {
		return err
	}
	defer blobs.Close()
	presigner, err := newPresigner(cfg)
	if err != nil {
		return err
	}

	// Load the catalog.
	from, err := p.inspectedManifestSources("")
	if err != nil {
		return err
	}
	asked, stopAsking := onSignal(syscall.SIGHUP)
	defer stopAsking()
	tools := catalog.New(db, log)
	keeper := &toolsync.Syncer{
		DB:       db,
		Blobs:    blobs,
		Catalog:  tools,
		Folders:  from,
		Log:      log,
		Interval: time.Duration(cfg.Catalog.Refresh),
		Reload:   asked,
		Now:      time.Now,
	}
	if err := keeper.LoadCatalog(ctx); err != nil {
		return err
	}

	if err := listeners.useACME(db, keys); err != nil {
		return err
	}

	// Create the services. A node without background work can still add jobs to
	// the queue.
	jobs, err := queue.Open(db, queue.Options{Log: log, Now: time.Now, Drain: drainTime(cfg)})
	if err != nil {
		return err
	}
	events := dispatch.NewLoop()
	who := p.openPeople(db, keys, jobs, events.Wake)
	registry := telemetry.Registry(buildVersion())
	work, err := p.openRuns(runParts{
		db:      db,
		keys:    keys,
		blobs:   blobs,
		catalog: tools,
		budgets: who.budgets,
		jobs:    jobs,
		events:  events,
		log:     log,
		metrics: registry,
	})
	if err != nil {
		return err
	}
	figures := metrics.New(metrics.Options{
		DB:      db,
		Memory:  work.memory,
		Engines: work.engineNames(),
		Pools:   work.poolNames(),
		Log:     log,
		Now:     time.Now,
	})
	registry.MustRegister(figures)
	err = db.Write(ctx, func(tx *sqldb.Tx) error { return storageLimits(cfg).RebalanceShards(ctx, tx) })
	if err != nil {
		return fmt.Errorf("count stored files: %w", err)
	}
	var handlers []queue.Handler
	if cfg.HasRole("worker") {
		sender, err := p.newMailSender()
		if err != nil {
			return err
		}
		handlers = backgroundjobs.Handlers(backgroundjobs.Parts{
			DB:          db,
			Blobs:       blobs,
			Library:     work.library,
			Boards:      work.boards,
			Uploads:     work.uploads,
			Runner:      work.runner,
			Devices:     who.devices,
			Tokens:      who.tokens,
			Mail:        sender,
			MailBox:     keys.BoxFor(mailPurpose),
			Log:         log,
			Now:         time.Now,
			Leftovers:   time.Duration(cfg.Retention.Orphans),
			SweepEvery:  time.Duration(cfg.Retention.Every),
			Retention:   generation.Retention{Runs: time.Duration(cfg.Retention.Runs), Events: time.Duration(cfg.Retention.Events)},
			KeyLifetime: time.Duration(cfg.Limits.IdempotencyLifetime),
		})
	}

	// Create the HTTP handlers.
	root := http.NotFoundHandler()
	if cfg.HasRole("api") {
		calls, err := api.New(api.Parts{
			Gate: &access.Gate{
				DB:                 db,
				Devices:            who.devices,
				Tokens:             who.tokens,
				Now:                db.Now,
				RequireVerified:    cfg.RequireVerifiedEmail,
				Operators:          principal.NewOperators(cfg.Operators),
				RefuseOAuthReports: cfg.Reporting.OAuth == "refuse",
			},
			Accounts:     who.accounts,
			Companies:    who.companies,
			PersonalData: who.personalData(blobs),
			Runs:         work.service,
			Hub:          work.hub,
			Intake:       work.intake,
			Library:      work.library,
			Boards:       work.boards,
			Resumable:    work.uploads,
			Links:        work.links,
			Secrets:      work.secrets,
			DB:           db,
			Blobs:        blobs,
			Presigner:    presigner,
			Catalog:      tools,
			Cursors:      cursor.New(keys.DeriveKey("cursor")),
			BaseURL:      cfg.BaseURL,
			Now:          time.Now,
			Space:        work.space.CheckDisks,
			Origins:      cfg.HTTP.CORSOrigins,
			OpenAI:       openAISettings(cfg),
			OAuth:        oauthSettings(cfg),
			MCP:          mcpSettings(cfg),
			Version:      buildVersion(),
			Installation: operator.Installation{
				Version:      buildVersion(),
				Started:      started,
				StoresInS3:   strings.HasPrefix(cfg.BlobsURL(), "s3:"),
				StorageLimit: storageLimits(cfg).Total,
				StorageState: func() string { return string(work.space.CurrentState()) },
				Settings:     shownSettings(p),
			},
			Limits: api.Limits{
				JSONBytes:         int64(cfg.Limits.JSONBytes),
				JSONDepth:         cfg.Limits.JSONDepth,
				PageSize:          cfg.Limits.PageSize,
				PageDefault:       cfg.Limits.PageDefault,
				ToolsPageDefault:  cfg.Limits.ToolsPageDefault,
				RequestsPerMinute: cfg.Limits.RequestsPerMinute,
				FileBytes:         int64(cfg.Limits.FileBytes),
				RequestBytes:      int64(cfg.Limits.RequestBytes),
				KeyLength:         cfg.Limits.IdempotencyKeyLength,
				DecodeWait:        time.Duration(cfg.Memory.Wait),
			},
		})
		if err != nil {
			return err
		}
		apiReference, err := reference.New()
		if err != nil {
			return err
		}
		documentation, err := docs.New(cfg.BaseURL)
		if err != nil {
			return err
		}
		look := studio.Options{Files: web.Dist(), AppURL: cfg.AppURL, MediaURL: cfg.Media.URL}
		if presigner != nil {
			look.StoreURL = presigner.Origin()
		}
		site, err := studio.New(look)
		if err != nil {
			return err
		}
		pages, err := pages.New(pages.Parts{
			Accounts:     who.accounts,
			PersonalData: who.personalData(blobs),
			Provider:     who.provider,
			Studio:       site,
			Box:          keys.BoxFor("oidc pending"),
			Key:          keys.DeriveKey("form"),
			AppURL:       cfg.AppURL,
			BaseURL:      cfg.BaseURL,
			HasOAuth:     cfg.OAuth.Enabled,
			Now:          db.Now,
			WallClock:    time.Now,
		})
		if err != nil {
			return err
		}
		people := scim.New(scim.Parts{Provisioning: who.provisioning, BaseURL: cfg.BaseURL, RequestsPerMinute: cfg.Limits.RequestsPerMinute, Now: time.Now})
		root = routeRequests(calls, documentation, apiReference, pages, people)
	}
	var tracer trace.Tracer
	if cfg.Trace.Endpoint != "" {
		t, stop, err := telemetry.Tracer(ctx, cfg.Trace.Endpoint, buildVersion(), cfg.Trace.Sample)
		if err != nil {
			return err
		}
		defer func() { _ = stop(context.WithoutCancel(ctx)) }() // if stop fails, unsent traces are lost
		tracer = t
	}
	health := &httpd.Health{Now: time.Now, Checks: map[string]func(context.Context) error{"database": db.Ping, "blobs": blobs.Ping, "queue": jobs.Ping}}
	health.Details = map[string]func() string{"storage": func() string { return string(work.space.CurrentState()) }}
	if listeners.acme != nil {
		health.Details["certificate"] = listeners.certificateState
	}
	server := httpd.New(root, httpd.Options{
		Log:             log,
		Metrics:         registry,
		Tracer:          tracer,
		Health:          health,
		Now:             time.Now,
		HSTS:            strings.HasPrefix(cfg.BaseURL, "https:"),
		TrustedProxies:  cfg.HTTP.TrustedProxies,
		Connections:     p.connectionLimits(log),
		TLS:             listeners.tls,
		HeaderTimeout:   time.Duration(cfg.HTTP.HeaderTimeout),
		BodyTimeout:     time.Duration(cfg.HTTP.BodyTimeout),
		WriteTimeout:    time.Duration(cfg.HTTP.WriteTimeout),
		IdleTimeout:     time.Duration(cfg.HTTP.IdleTimeout),
		HeaderBytes:     int(cfg.HTTP.HeaderBytes),
		ShutdownDelay:   time.Duration(cfg.Shutdown.Delay),
		ShutdownTimeout: time.Duration(cfg.Shutdown.Timeout),
	})

	// Start the server and the background work.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Run(ctx, listeners.main) })
	listeners.runBackground(ctx, group)
	group.Go(func() error { keeper.Run(ctx); return nil })
	if len(handlers) > 0 {
		group.Go(func() error { return jobs.Run(ctx, handlers) })
	}
	work.runBackground(ctx, group)
	reporter := work.newReporter(db, log, node.Node{Version: buildVersion(), Roles: cfg.Roles, Started: started})
	group.Go(func() error { reporter.Run(ctx); return nil })
	if l := p.metricsListener(log); l != nil {
		limited := httpd.NewListener(l, metricsConnections, log, time.Now)
		group.Go(func() error {
			return telemetry.ServeMetrics(ctx, limited, limited.TrackState, registry, telemetry.Document{Path: "/pools", Read: figures.PoolsDocument})
		})
	}
	group.Go(func() error { p.logReady(ctx, log, db, health); return nil })
	err = group.Wait()
	if err == nil {
		log.Info("service stopped")
	}
	return err
}

// drainTime returns the time that running jobs have to finish at shutdown. It
// is a second shorter than the time for requests, because unfinished jobs are
// returned to the queue afterwards.
func drainTime(c *config.Config) time.Duration {
	return max(time.Duration(c.Shutdown.Timeout)-time.Second, time.Millisecond)
}

// routeRequests returns a handler that passes each request to the handler of
// its path. Requests to the API bypass the mux of the other handlers, because
// the API has a mux of its own.
func routeRequests(calls, docs, reference, pages, people http.Handler) http.Handler {
	rest := http.NewServeMux()
	rest.Handle("/", pages)
	for _, path := range []string{"/docs", "/docs/", "/llms.txt"} {
		rest.Handle(path, docs)
	}
	rest.Handle("/docs/api", reference)
	rest.Handle("/docs/api/", reference)
	rest.Handle("/scim/", people)
	for _, path := range []string{"/api", "/me", "/catalog/", "/media/", "/v1/", "/mcp", "/oauth/token", "/oauth/register", "/oauth/revoke", "/.well-known/"} {
		rest.Handle(path, calls)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			calls.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// openAISettings returns the settings of the OpenAI-compatible interface, or nil
// if it is off.
func openAISettings(c *config.Config) *api.OpenAI {
	if !c.OpenAI.Enabled {
		return nil
	}
	return &api.OpenAI{Wait: time.Duration(c.OpenAI.Wait), KeepRuns: c.OpenAI.KeepRuns}
}

// onSignal returns a channel that receives a value when the process gets signal
// s, and a function that stops the delivery. Several signals that arrive before
// the channel is read may be reported as one.
func onSignal(s os.Signal) (<-chan struct{}, func()) {
	signals := make(chan os.Signal, 1)
	heard := make(chan struct{})
	signal.Notify(signals, s)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
			case <-done:
				return
			}
			select {
			case heard <- struct{}{}:
			case <-done:
				return
			}
		}
	}()
	return heard, func() { signal.Stop(signals); close(done) }
}

// metricsListener listens on the address of /metrics. If the address is in
// use, for example by a second process on the machine, the service runs
// without metrics.
func (p *program) metricsListener(log *slog.Logger) net.Listener {
	if p.cfg.Metrics.Listen == "off" {
		return nil
	}
	l, err := net.Listen("tcp", p.cfg.Metrics.Listen)
	if err != nil {
		log.Warn("metrics listener could not be opened; metrics are not served", "address", p.cfg.Metrics.Listen, "error", err)
		return nil
	}
	return l
}

// logReady waits until the service is ready and logs it. While no account
// exists, it also prints the link for creating the first account.
func (p *program) logReady(ctx context.Context, log *slog.Logger, db *sqldb.DB, health *httpd.Health) {
	for {
		wrong := health.CheckDependencies(ctx)
		if len(wrong) == 0 {
			break
		}
		log.Warn("service is not ready yet", "missing", fmt.Sprint(wrong))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
	log.Info("ready", "url", p.cfg.BaseURL, "database", db.Dialect.Name, "roles", strings.Join(p.cfg.Roles, ","), "version", buildVersion())
	fmt.Fprintln(p.stdout, "atelier: ready", p.cfg.BaseURL)
	if !p.cfg.HasRole("api") {
		return
	}
	var token string
	err := db.Write(ctx, func(tx *sqldb.Tx) (err error) { token, err = person.CreateSetupToken(ctx, tx); return err })
	if err != nil {
		log.Warn("set-up link could not be created", "error", err)
		return
	}
	if token != "" {
		// The link is printed but not logged, because logs are stored and the
		// link is a credential.
		fmt.Fprintf(p.stderr, "\natelier: no account exists yet. Create the first one at %s/setup?token=%s\n\n", p.cfg.AppURL, token)
	}
}

// oauthSettings returns the settings of the authorization of apps, or nil if it is
// off.
func oauthSettings(c *config.Config) *api.OAuth {
	if !c.OAuth.Enabled {
		return nil
	}
	return &api.OAuth{Registers: c.OAuth.Registration}
}

// mcpSettings returns the settings of the Model Context Protocol, or nil if it
// is off.
func mcpSettings(c *config.Config) *api.MCP {
	if !c.MCP.Enabled {
		return nil
	}
	return &api.MCP{
		Wait: time.Duration(c.MCP.Wait),
		Settings: mcp.Settings{
			Kits:        c.MCP.Kits,
			MaxTools:    c.MCP.MaxTools,
			InlineBytes: int64(c.MCP.InlineBytes),
			BodyBytes:   int64(c.MCP.BodyBytes),
		},
	}
}
