package api_test

import (
	"context"
	"log/slog"
	"time"

	"atelier/internal/base/pubsub"
	"atelier/internal/board"
	"atelier/internal/engine"
	"atelier/internal/engine/scriptengine"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/media"
	"atelier/internal/file/resumable"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/generation"
	"atelier/internal/run/policy"
	"atelier/internal/run/runner"
)

// addRuns gives the service everything that runs need but somebody who works
// on them.
func (s *service) addRuns(log *slog.Logger) {
	p := &s.parts
	p.Hub = pubsub.New()
	p.Intake = &ingest.Pipeline{Blobs: p.Blobs, Analyzer: media.NewAnalyzer(media.Limits{Pixels: 50e6, Frames: 600, Duration: 10 * time.Minute})}
	p.Library = &library.Library{DB: s.db, Blobs: p.Blobs, Retention: library.Retention{Deleted: 24 * time.Hour}}
	p.Resumable = &resumable.Service{DB: s.db, Library: p.Library, Intake: p.Intake, Settings: resumable.Settings{
		Lifetime: 24 * time.Hour, MaxUnfinished: 16, MaxBytes: p.Limits.FileBytes, DecodeWait: time.Second, OrphanAge: time.Hour,
	}}
	p.Boards = &board.Boards{DB: s.db, Hub: pubsub.New(), Keep: 30 * 24 * time.Hour}
	p.Links = library.URLSigner{Key: []byte("a key of the links"), BaseURL: p.BaseURL, Lifetime: 7 * 24 * time.Hour, Now: time.Now}
	p.Secrets = webhook.NewSecrets(s.site.Keys.BoxFor("webhook"), 24*time.Hour)
	p.Runs = generation.New(generation.Parts{
		DB: s.db, Catalog: p.Catalog, Policy: &policy.Checker{Rules: policy.Default()}, Guard: webhook.NewGuard(nil), Hub: p.Hub, Budgets: s.site.Budgets, Links: p.Links,
		Settings: generation.Settings{
			InputFiles: 12, MetadataBytes: 8192, PluginLength: 64, ActiveRuns: 10, CreatePerMinute: 10, CreatePerHour: 100, NumResults: 64,
			KeyLifetime: 24 * time.Hour, KeyWait: 10 * time.Second, PollMin: time.Second, PollMax: 10 * time.Second,
		},
		Queued: func(engine string) {
			if s.runner != nil {
				s.runner.NoticeQueued(engine)
			}
		},
		Ended: func() {},
	})
}

// work lets runs be done until the test ends.
func (s *service) work() {
	s.t.Helper()
	p := s.parts
	s.runner = runner.New(runner.Parts{
		DB: s.db, Blobs: p.Blobs, Intake: p.Intake, Catalog: p.Catalog, Runs: p.Runs, Hub: p.Hub,
		Slots: map[string]engine.Slots{"script": {Engine: scriptengine.New(), Parallel: 4}}, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Settings: runner.Settings{Lease: 30 * time.Second, Attempts: 3, MaxWait: time.Hour, Drain: time.Second, OutputBytes: 50 << 20},
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.runner.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Errorf("runner: %v", err)
		}
	})
}
