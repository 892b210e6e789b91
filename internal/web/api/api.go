// Package api assembles /api/v2, /v1 and /mcp from their resources, each of which is
// a package in a subdirectory with a list of routes (rest.Route). It
// authenticates, authorizes and rate-limits every request. /api/v2 responds as
// the OpenAPI document specifies, /v1 as the OpenAI API does, and /mcp as the
// Model Context Protocol does.
package api

import (
	"net/http"
	"strings"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/companyadmin"
	"atelier/internal/account/operator"
	"atelier/internal/account/personaldata"
	"atelier/internal/base/cursor"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/throttle"
	"atelier/internal/board"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/resumable"
	"atelier/internal/money/ledger"
	"atelier/internal/money/report"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/session"
	"atelier/internal/run/generation"
	"atelier/internal/run/savedflow"
	"atelier/internal/web/access"
	"atelier/internal/web/api/accesstokens"
	"atelier/internal/web/api/boards"
	"atelier/internal/web/api/companies"
	"atelier/internal/web/api/devices"
	"atelier/internal/web/api/events"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/flows"
	"atelier/internal/web/api/generations"
	"atelier/internal/web/api/invitations"
	ledgerapi "atelier/internal/web/api/ledger"
	libraryapi "atelier/internal/web/api/library"
	"atelier/internal/web/api/mcp"
	"atelier/internal/web/api/me"
	"atelier/internal/web/api/media"
	"atelier/internal/web/api/newrun"
	"atelier/internal/web/api/oauth"
	"atelier/internal/web/api/openai"
	operatorapi "atelier/internal/web/api/operator"
	"atelier/internal/web/api/reports"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/runwait"
	"atelier/internal/web/api/sessions"
	"atelier/internal/web/api/teams"
	"atelier/internal/web/api/tools"
	"atelier/internal/web/api/uploads"
	"atelier/internal/web/api/webhooks"
)

// Parts are the services and settings of the API.
type Parts struct {
	Gate         *access.Gate
	Accounts     *account.Services
	Companies    *companyadmin.Services
	Runs         *generation.Service
	Hub          *pubsub.Hub // notifies of changes of runs
	Boards       *board.Boards
	Intake       *ingest.Pipeline
	Library      *library.Library
	Resumable    *resumable.Service
	PersonalData *personaldata.Service
	Links        library.URLSigner
	Secrets      *webhook.Secrets
	DB           *sqldb.DB
	Blobs        blob.Store
	Presigner    *blob.Presigner // nil: files are sent by this node
	Catalog      *catalog.Catalog
	Cursors      cursor.Sealer
	BaseURL      string
	Limits       Limits
	// Origins are the web origins whose pages may use the API (CORS).
	Origins []string
	// OpenAI has the settings of the OpenAI-compatible interface. nil turns it
	// off.
	OpenAI *OpenAI
	// OAuth has the settings of the authorization of apps. nil turns it off.
	OAuth *OAuth
	// MCP has the settings of the Model Context Protocol. nil turns it off.
	MCP     *MCP
	Version string // of the program
	// Installation is shown to operators.
	Installation operatorapi.Installation
	// Space returns an error while the disk is nearly full, for requests that
	// store files. nil means that there is no such check.
	Space func() error
	Now   func() time.Time
}

// Limits limits the requests of callers.
type Limits struct {
	JSONBytes         int64
	JSONDepth         int
	PageSize          int // the maximum page size of a list
	PageDefault       int
	ToolsPageDefault  int // the default page size of the list of tools
	RequestsPerMinute int // by one person, or by one IP address that sends no credentials
	FileBytes         int64
	RequestBytes      int64
	KeyLength         int           // the maximum length of an Idempotency-Key
	DecodeWait        time.Duration // the longest time that a file waits for memory to decode it
}

// OpenAI has the settings of the OpenAI-compatible interface.
type OpenAI struct {
	Wait     time.Duration // the longest time that a response waits for the end of its run
	KeepRuns bool          // runs go on after their clients have left
}

// MCP has the settings of the Model Context Protocol.
type MCP struct {
	Wait     time.Duration // the longest time that a response waits for the end of its run
	Settings mcp.Settings
}

// OAuth has the settings of the authorization of apps.
type OAuth struct {
	Registers bool // apps can register themselves
}

// resource is a part of the API that has its own routes.
type resource interface {
	Routes() []rest.Route
}

// New returns the handler of all paths under /api/ and /v1/, of /mcp, of the
// pictures of tools, and of signed URLs.
func New(p Parts) (http.Handler, error) {
	s, err := newServer(p)
	if err != nil {
		return nil, err
	}
	return s.newHandler(s.allRoutes()), nil
}

// newResources returns all resources of the API.
func newResources(p Parts, compressed *rest.GzipCache) []resource {
	if p.Space == nil {
		p.Space = func() error { return nil }
	}
	jsonLimits := rest.JSONLimits{Bytes: p.Limits.JSONBytes, Depth: p.Limits.JSONDepth}
	pages := rest.Pager{Cursors: p.Cursors, DefaultSize: p.Limits.PageDefault, MaxSize: p.Limits.PageSize}
	toolPages := rest.Pager{Cursors: p.Cursors, DefaultSize: p.Limits.ToolsPageDefault, MaxSize: p.Limits.PageSize}
	streams := rest.NewStreams(p.Now)
	verifier := blob.NewVerifier(p.Blobs)
	ended := &generations.EndedCache{}
	files := &filebody.Receiver{
		Intake:          p.Intake,
		Library:         p.Library,
		Space:           p.Space,
		MaxFileBytes:    p.Limits.FileBytes,
		MaxRequestBytes: p.Limits.RequestBytes,
		DecodeWait:      p.Limits.DecodeWait,
		Now:             p.Now,
	}
	newRuns := &newrun.Receiver{Runs: p.Runs, Files: files, MaxKeyLength: p.Limits.KeyLength}

	boardsHandler := &boards.Handler{
		Boards:  p.Boards,
		Links:   p.Links,
		Streams: streams,
		Moves:   throttle.New(boards.MovesPerMinute, p.Now),
		Pages:   pages,
		JSON:    jsonLimits,
	}
	feed := events.NewFeed(events.FeedParts{
		DB:     p.DB,
		Runs:   p.Runs,
		Hub:    p.Hub,
		Boards: p.Boards,
		Grants: p.Accounts.Grants,
	})

	all := []resource{
		&accesstokens.Handler{
			Tokens: p.Accounts.AccessTokens,
			Pages:  pages,
			JSON:   jsonLimits,
		},
		boardsHandler,
		&companies.Handler{
			Companies: p.Companies,
			Pages:     pages,
			JSON:      jsonLimits,
			BaseURL:   p.BaseURL,
		},
		&devices.Handler{
			Logins:  p.Accounts.Devices,
			SignIn:  p.Accounts.SignIn,
			Pages:   pages,
			JSON:    jsonLimits,
			Guesses: throttle.New(devices.GuessesPerMinute, p.Now),
		},
		&events.Handler{
			Feed:    feed,
			Boards:  boardsHandler,
			Links:   p.Links,
			Streams: streams,
		},
		&flows.Handler{
			Flows: &savedflow.Service{DB: p.DB, Catalog: p.Catalog},
			JSON:  jsonLimits,
		},
		&generations.Handler{
			Runs:    p.Runs,
			Hub:     p.Hub,
			NewRuns: newRuns,
			Links:   p.Links,
			Ended:   ended,
			Streams: streams,
			Pages:   pages,
			JSON:    jsonLimits,
			BaseURL: p.BaseURL,
		},
		&invitations.Handler{
			SignUp:    p.Accounts.SignUp,
			Companies: p.Companies,
			Pages:     pages,
			JSON:      jsonLimits,
		},
		&ledgerapi.Handler{
			History: &ledger.History{DB: p.DB},
			Catalog: p.Catalog,
			Pages:   pages,
			Now:     p.Now,
		},
		&libraryapi.Handler{
			Library: p.Library,
			Catalog: p.Catalog,
			Links:   p.Links,
			Pages:   pages,
			Changed: ended.DropAll,
		},
		&me.Handler{
			Profiles:     p.Accounts.Profiles,
			Grants:       p.Accounts.Grants,
			PersonalData: p.PersonalData,
			JSON:         jsonLimits,
			Now:          p.Now,
		},
		&media.Handler{
			Library:   p.Library,
			Links:     p.Links,
			Blobs:     p.Blobs,
			Presigner: p.Presigner,
			Files:     verifier,
			Now:       p.Now,
			AppOrigin: otherOrigin(p.Accounts.Settings.AppURL, p.Links.BaseURL),
		},
		&operatorapi.Handler{
			Operator:     &operator.Service{DB: p.DB, Runs: p.Runs, Grants: p.Accounts.Grants, Operators: p.Accounts.Settings.Operators},
			Catalog:      p.Catalog,
			Installation: p.Installation,
			Pages:        pages,
			JSON:         jsonLimits,
			MaxKeyLength: p.Limits.KeyLength,
		},
		&reports.Handler{
			Reports: &report.Service{DB: p.DB},
			Catalog: p.Catalog,
			Library: p.Library,
			Pages:   pages,
			Now:     p.Now,
		},
		&sessions.Handler{
			SignIn: p.Accounts.SignIn,
			Cookie: session.CookieName(strings.HasPrefix(p.Accounts.Settings.AppURL, "https://")),
			Issued: throttle.New(sessions.TokensPerMinute, p.Now),
			Now:    p.Now,
		},
		&teams.Handler{
			Companies: p.Companies,
			Pages:     pages,
			JSON:      jsonLimits,
		},
		&tools.Handler{
			Catalog:    p.Catalog,
			Blobs:      p.Blobs,
			Files:      verifier,
			Compressed: compressed,
			Pages:      toolPages,
			BaseURL:    p.BaseURL,
		},
		&uploads.Handler{
			Library: p.Library,
			Files:   files,
			Links:   p.Links,
			Pages:   pages,
		},
		&uploads.ResumableHandler{
			Resumable:    p.Resumable,
			Files:        files,
			MaxKeyLength: p.Limits.KeyLength,
		},
		&webhooks.Handler{
			DB:      p.DB,
			Secrets: p.Secrets,
			Runs:    p.Runs,
			Ended:   ended,
			Pages:   pages,
		},
	}
	if p.OpenAI != nil {
		all = append(all, &openai.Handler{
			Runs:     p.Runs,
			NewRuns:  newRuns,
			Waiter:   &runwait.Waiter{Runs: p.Runs, Hub: p.Hub, Limit: p.OpenAI.Wait},
			Library:  p.Library,
			Links:    p.Links,
			Blobs:    p.Blobs,
			Catalog:  p.Catalog,
			Streams:  streams,
			JSON:     jsonLimits,
			Now:      p.Now,
			KeepRuns: p.OpenAI.KeepRuns,
		})
	}
	if p.OAuth != nil {
		all = append(all, &oauth.Handler{
			Apps:      p.Accounts.Apps,
			BaseURL:   p.BaseURL,
			AppURL:    p.Accounts.Settings.AppURL,
			Registers: p.OAuth.Registers,
			Depth:     p.Limits.JSONDepth,
			Now:       p.Now,
		})
	}
	if p.MCP != nil {
		all = append(all, &mcp.Handler{
			Settings: p.MCP.Settings,
			Runs:     p.Runs,
			Waiter:   &runwait.Waiter{Runs: p.Runs, Hub: p.Hub, Limit: p.MCP.Wait},
			Profiles: p.Accounts.Profiles,
			Library:  p.Library,
			Links:    p.Links,
			Blobs:    p.Blobs,
			Catalog:  p.Catalog,
			Files:    files,
			Depth:    p.Limits.JSONDepth,
			BaseURL:  p.BaseURL,
			HasOAuth: p.OAuth != nil,
			Version:  p.Version,
			Now:      p.Now,
		})
	}
	return all
}
