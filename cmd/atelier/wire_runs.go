package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"atelier/internal/base/config"
	"atelier/internal/base/dispatch"
	"atelier/internal/base/ids"
	"atelier/internal/base/keyring"
	"atelier/internal/base/memory"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine/subprocess"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/media"
	"atelier/internal/file/quota"
	"atelier/internal/file/resumable"
	"atelier/internal/money/budget"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/flowrun"
	"atelier/internal/run/generation"
	"atelier/internal/run/node"
	"atelier/internal/run/policy"
	"atelier/internal/run/runner"
)

// runs has the services that create, execute and store runs.
type runs struct {
	hub     *pubsub.Hub
	service *generation.Service
	intake  *ingest.Pipeline
	library *library.Library
	boards  *board.Boards
	uploads *resumable.Service
	links   library.URLSigner
	secrets *webhook.Secrets
	space   *quota.Monitor
	memory  *memory.Budget
	relay   *runner.Relay
	flows   *flowrun.Decider

	// The following fields are set on worker nodes only.
	engines *engines
	runner  *runner.Runner
	sender  *webhook.Sender
}

// runParts are the dependencies of the services for runs.
type runParts struct {
	db      *sqldb.DB
	keys    keyring.Ring
	blobs   blob.Store
	catalog *catalog.Catalog
	budgets *budget.Service
	jobs    queue.Queue
	events  *dispatch.Loop // wakes the webhook sender
	log     *slog.Logger
	metrics prometheus.Registerer
}

// openRuns creates the services for runs. The URLs of the service must already
// be set in the settings.
func (p *program) openRuns(o runParts) (*runs, error) {
	c := p.cfg
	rules, err := p.newPolicyChecker()
	if err != nil {
		return nil, err
	}
	priorities, err := c.Runs.PrioritiesByRole()
	if err != nil {
		return nil, err
	}
	guard := webhook.NewGuard(c.Webhook.AllowNetworks)
	space := quota.NewMonitor(quota.Options{
		DB:       o.db,
		Limits:   storageLimits(c),
		Folders:  diskFolders(c),
		MinFree:  int64(c.Storage.MinFreeBytes),
		WarnFree: int64(c.Storage.WarnFreeBytes),
		Log:      o.log,
		Metrics:  o.metrics,
	})
	budget := p.openMemory(o.log)
	lab := media.NewAnalyzer(media.Limits{Pixels: c.Media.Pixels, Frames: c.Media.Frames, Duration: time.Duration(c.Media.Duration), Memory: budget})
	rs := &runs{
		hub:    pubsub.New(),
		intake: &ingest.Pipeline{Blobs: blob.WithSpaceCheck(o.blobs, space.CheckDisks), Analyzer: lab},
		space:  space,
		memory: budget,
		library: &library.Library{
			DB:        o.db,
			Blobs:     o.blobs,
			OrphanAge: time.Duration(c.Retention.Orphans),
			Storage:   storageLimits(c),
			Retention: library.Retention{
				Uploads: time.Duration(c.Retention.Uploads),
				Results: time.Duration(c.Retention.Results),
				Deleted: time.Duration(c.Retention.Deleted),
			},
		},
		boards:  &board.Boards{DB: o.db, Hub: pubsub.New(), Keep: time.Duration(c.Retention.Boards)},
		links:   library.URLSigner{Key: o.keys.DeriveKey("media"), BaseURL: c.Media.URL, Lifetime: time.Duration(c.Media.URLLifetime), Now: o.db.Now},
		secrets: webhook.NewSecrets(o.keys.BoxFor("webhook"), time.Duration(c.Webhook.SecretOverlap)),
	}
	rs.uploads = &resumable.Service{
		DB:      o.db,
		Library: rs.library,
		Intake:  rs.intake,
		Settings: resumable.Settings{
			Lifetime:      time.Duration(c.Uploads.UnfinishedFor),
			MaxUnfinished: c.Uploads.Unfinished,
			MaxBytes:      int64(c.Limits.FileBytes),
			DecodeWait:    time.Duration(c.Memory.Wait),
			OrphanAge:     time.Duration(c.Retention.Orphans),
		},
	}
	flows := dispatch.NewLoop()
	rs.service = generation.New(generation.Parts{
		DB:      o.db,
		Catalog: o.catalog,
		Policy:  rules,
		Guard:   guard,
		Hub:     rs.hub,
		Budgets: o.budgets,
		Links:   rs.links,
		Settings: generation.Settings{
			InputFiles:       c.Limits.InputFiles,
			MetadataBytes:    int(c.Limits.MetadataBytes),
			PluginLength:     c.Limits.PluginLength,
			ActiveRuns:       c.Limits.ActiveRuns,
			CreatePerMinute:  c.Limits.CreatePerMinute,
			CreatePerHour:    c.Limits.CreatePerHour,
			NumResults:       c.Limits.NumResults,
			KeyLifetime:      time.Duration(c.Limits.IdempotencyLifetime),
			KeyWait:          time.Duration(c.Limits.IdempotencyWait),
			PollMin:          time.Duration(c.Runs.PollMin),
			PollMax:          time.Duration(c.Runs.PollMax),
			MonthlyAllowance: c.Tokens.MonthlyAllowance,
			TopUp:            c.Tokens.TopUp,
			Storage:          storageLimits(c),
			Priorities:       generation.Priorities{Step: time.Duration(c.Runs.PriorityStep), Roles: priorities},
		},
		// The relay notifies other nodes of queued runs. It calls the runner,
		// and the runner calls this service, so the relay is created last. No
		// run can be queued before openRuns returns.
		Queued:  func(engine string) { rs.relay.RelayQueued(engine) },
		FlowDue: flows.Wake,
		Ended:   o.events.Wake,
	})
	rs.flows = &flowrun.Decider{DB: o.db, Runs: rs.service, Log: o.log, Loop: flows}
	if !c.HasRole("worker") {
		rs.relay = runner.NewRelay(o.db, o.jobs, o.log, nil)
		return rs, nil
	}
	if rs.engines, err = p.openEngines(o.log); err != nil {
		return nil, err
	}
	p.logSandbox(o.log)
	// Delete the temporary folders that a killed process left behind.
	if err := subprocess.Sweep(c.Engines.Folder); err != nil {
		o.log.Warn("could not remove the folders of unfinished jobs", "error", err)
	}
	if rs.engines.video != nil {
		rs.intake.ExtractFrame = rs.engines.video.FirstFrame
	}
	results := *rs.intake
	results.Blobs = blob.WithSpaceCheck(o.blobs, space.CheckDisksForResults)
	rs.runner = runner.New(runner.Parts{
		DB:      o.db,
		Blobs:   results.Blobs,
		Intake:  &results,
		Catalog: o.catalog,
		Runs:    rs.service,
		Hub:     rs.hub,
		Slots:   rs.engines.slots,
		Pools:   rs.engines.pools,
		Memory:  budget,
		Log:     o.log,
		Metrics: o.metrics,
		Now:     time.Now,
		Address: func(a asset.Asset, personID string) string {
			return rs.links.SignURL(library.KindInput, a.ID, library.VariantFile, personID, library.InputNames(a).File)
		},
		Settings: runner.Settings{
			Lease:        time.Duration(c.Runs.Lease),
			Retry:        durations(c.Runs.Retry),
			Attempts:     c.Runs.Attempts,
			MaxWait:      time.Duration(c.Runs.MaxWait),
			QueueTimeout: time.Duration(c.Engines.QueueTimeout),
			Drain:        drainTime(c),
			OutputBytes:  int64(c.Runs.OutputBytes),
			Probe:        time.Duration(c.Engines.Probe),
			Provenance:   c.Engines.Provenance,
			Prompts:      c.Engines.Prompts,
		},
	})
	rs.sender = webhook.New(webhook.Options{
		DB:         o.db,
		Secrets:    rs.secrets,
		SecretMade: webhook.RecordFirstSecret,
		Guard:      guard,
		Log:        o.log,
		Metrics:    o.metrics,
		Now:        time.Now,
		Timeout:    time.Duration(c.Webhook.Timeout),
		Schedule:   durations(c.Webhook.RetrySchedule),
		Events:     rs.service,
		Loop:       o.events,
	})
	rs.relay = runner.NewRelay(o.db, o.jobs, o.log, rs.runner.NoticeQueued)
	return rs, nil
}

// openMemory returns the memory budget that decoding pictures and the picture
// tools use together. It also sets the memory limit of the garbage collector.
func (in *installation) openMemory(log *slog.Logger) *memory.Budget {
	bytes := int64(in.cfg.Memory.Budget)
	if bytes == 0 {
		bytes = memory.DefaultBytes()
	}
	limit := memory.SetRuntimeLimit(bytes)
	log.Info("memory limits", "budget_mb", bytes>>20, "gomemlimit_mb", limit>>20)
	return memory.NewBudget(bytes)
}

// engineNames returns the names of this node's engines, sorted.
func (rs *runs) engineNames() []string {
	if rs.engines == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(rs.engines.slots))
}

// poolNames returns the names of the pools that this node serves, sorted.
func (rs *runs) poolNames() []string {
	if rs.engines == nil {
		return nil
	}
	names := map[string]bool{}
	for _, one := range rs.engines.slots {
		names[one.Pool] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// newReporter returns the reporter of this node. A worker reports under the
// name with which it claims runs.
func (rs *runs) newReporter(db *sqldb.DB, log *slog.Logger, n node.Node) *node.Reporter {
	n.ID = ids.New()
	r := &node.Reporter{DB: db, Log: log, Node: n}
	if rs.runner != nil {
		r.Node.ID = rs.runner.WorkerID()
		r.Engines = rs.runner.Engines
	}
	return r
}

// runBackground starts the background work of the runs.
func (rs *runs) runBackground(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { rs.service.WatchAvailability(ctx); return nil })
	group.Go(func() error { rs.space.Run(ctx); return nil })
	group.Go(func() error { rs.relay.Run(ctx); return nil })
	group.Go(func() error { rs.flows.Run(ctx); return nil })
	if rs.runner != nil {
		group.Go(func() error { defer rs.engines.Close(); return rs.runner.Run(ctx) })
		group.Go(func() error { return rs.sender.Run(ctx) })
	}
}

// storageLimits returns the configured limits on stored bytes, per account and
// in total.
func storageLimits(c *config.Config) quota.Limits {
	return quota.Limits{Account: int64(c.Storage.AccountBytes), Total: int64(c.Storage.TotalBytes)}
}

// diskFolders returns, by purpose, the local folders that grow: those with
// stored files and with the database.
func diskFolders(c *config.Config) map[string]string {
	folders := map[string]string{}
	if folder, ok := strings.CutPrefix(c.BlobsURL(), "file://"); ok {
		folders["files"] = folder
	}
	if file, ok := strings.CutPrefix(c.DatabaseURL(), "sqlite://"); ok {
		folders["database"] = filepath.Dir(file)
	}
	return folders
}

// newPolicyChecker returns the configured checker that decides which requests
// the content policy allows.
func (in *installation) newPolicyChecker() (*policy.Checker, error) {
	c := in.cfg.Policy
	checker := &policy.Checker{}
	switch c.Rules {
	case "":
		checker.Rules = policy.Default()
	case "none":
	default:
		f, err := os.Open(c.Rules)
		if err != nil {
			return nil, fmt.Errorf("policy.rules: %w", err)
		}
		defer f.Close()
		if checker.Rules, err = policy.Parse(f); err != nil {
			return nil, fmt.Errorf("policy.rules: %s: %w", c.Rules, err)
		}
	}
	if c.ModerationURL == "" {
		return checker, nil
	}
	var err error
	checker.Moderator, err = policy.NewModerator(policy.Options{URL: c.ModerationURL, Key: c.ModerationKey, Model: c.ModerationModel, Timeout: time.Duration(c.Timeout)})
	return checker, err
}

func durations(all []config.Span) []time.Duration {
	list := make([]time.Duration, len(all))
	for i, s := range all {
		list[i] = time.Duration(s)
	}
	return list
}
