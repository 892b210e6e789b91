// Package api serves /api/v2: it decodes requests, asks the capabilities, and
// writes answers and errors in the shapes of the OpenAPI document.
//
// Every route names the rule by which package access lets requests in. Every
// answer that is no success has the error envelope, whatever went wrong.
package api

import (
	"net/http"
	"slices"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/directory"
	"atelier/internal/account/dossier"
	"atelier/internal/base/cursor"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/throttle"
	"atelier/internal/board"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/generation"
	"atelier/internal/web/access"
	"atelier/internal/web/httpd"
)

// Parts are what the API is made of.
type Parts struct {
	Gate      *access.Gate
	Accounts  *account.Services
	Directory *directory.Directory
	Runs      *generation.Service
	Hub       *pubsub.Hub // of runs
	Boards    *board.Boards
	Intake    *ingest.Intake
	Library   *library.Library
	Dossier   *dossier.Dossier
	Links     library.Links
	Secrets   *webhook.Secrets
	DB        *sqldb.DB
	Blobs     blob.Store
	Catalog   *catalog.Catalog
	Cursors   cursor.Sealer
	BaseURL   string
	Limits    Limits
	// Origins are those whose pages may call the API (CORS); others may not.
	Origins []string
	// Space refuses what has to be stored while the disk is nearly full; nil
	// refuses nothing.
	Space func() error
	Now   func() time.Time
}

// Limits bound what a caller may send and ask for.
type Limits struct {
	JSONBytes         int64
	JSONDepth         int
	PageSize          int
	PageDefault       int
	ToolsPageDefault  int
	RequestsPerMinute int
	FileBytes         int64
	RequestBytes      int64
	KeyLength         int
	DecodeWait        time.Duration // of a file that others are read before
}

// Server answers the API's requests.
type Server struct {
	Parts
	persons   *throttle.Buckets // of known callers
	addresses *throttle.Buckets // of everybody else
	guesses   *throttle.Buckets // of device codes, by address
	streams   *throttle.Places  // of event streams, by person
	pages     pages
	zipped    zipped
	files     *blob.Verifier
	ended     endedRuns
	document  []byte
	// documentTag is the ETag of document.
	documentTag string
}

// prefix is where the API lives.
const prefix = "/api/v2"

// New makes the handler for everything under /api/ and for the catalog's
// pictures.
func New(p Parts) (http.Handler, error) {
	s, err := newServer(p)
	if err != nil {
		return nil, err
	}
	return s.handler(s.routes()), nil
}

func newServer(p Parts) (*Server, error) {
	doc, err := documentJSON()
	if err != nil {
		return nil, err
	}
	if p.Space == nil {
		p.Space = func() error { return nil }
	}
	return &Server{
		Parts:     p,
		persons:   throttle.New(p.Limits.RequestsPerMinute, p.Now),
		addresses: throttle.New(p.Limits.RequestsPerMinute, p.Now),
		guesses:   throttle.New(guessesPerMinute, p.Now),
		streams:   throttle.NewPlaces(maxStreams),
		files:     blob.NewVerifier(p.Blobs),
		document:  doc,

		documentTag: httpd.ETag(doc),
	}, nil
}

// routes lists all that is served. A route without a rule lets nobody in.
func (s *Server) routes() []route {
	return slices.Concat(s.companyRoutes(), s.governanceRoutes(), s.boardRoutes(), s.reportRoutes(), s.farewellRoutes(), s.directoryRoutes(), []route{
		{"POST", prefix + "/auth/device/start", access.Open, s.startDevice},
		{"GET", prefix + "/auth/device/poll", access.Open, s.pollDevice},
		{"POST", prefix + "/auth/device/poll", access.Open, s.pollDeviceByBody},
		{"POST", prefix + "/auth/token/refresh", access.Open, s.refreshToken},
		{"POST", prefix + "/auth/device/revoke", access.LeavingDevice, s.revokeDevice},
		{"POST", prefix + "/auth/sign-out-everywhere", access.Leaving, s.signOutEverywhere},

		{"GET", prefix + "/devices", access.SignedIn, s.listDevices},

		{"GET", prefix + "/me", access.Identity, s.getMe},
		{"GET", "/me", access.Identity, s.getMe},
		{"POST", prefix + "/me/top-up", access.Personal, s.claimTopUp},

		{"GET", prefix + "/access-tokens", access.SignedIn, s.listAccessTokens},
		{"POST", prefix + "/access-tokens", access.SignedIn, s.createAccessToken},
		{"DELETE", prefix + "/access-tokens/{token_id}", access.SignedIn, s.deleteAccessToken},
		{"POST", prefix + "/access-tokens/{token_id}/regenerate", access.SignedIn, s.regenerateAccessToken},
		{"GET", prefix + "/companies/{company_id}/access-tokens", access.SignedIn, s.listCompanyAccessTokens},
		{"POST", prefix + "/companies/{company_id}/access-tokens", access.SignedIn, s.createCompanyAccessToken},
		{"DELETE", prefix + "/companies/{company_id}/access-tokens/{token_id}", access.SignedIn, s.deleteCompanyAccessToken},
		{"POST", prefix + "/companies/{company_id}/access-tokens/{token_id}/regenerate", access.SignedIn, s.regenerateCompanyAccessToken},

		{"GET", prefix + "/tools", access.Catalog, s.listTools},
		{"GET", prefix + "/tools/{tool_id}", access.Catalog, s.getTool},
		{"GET", prefix + "/tool-tags", access.Catalog, s.listToolTags},
		{"GET", prefix + "/kits", access.Catalog, s.listKits},

		{"POST", prefix + "/generate", access.Generating, s.createGeneration},
		{"POST", prefix + "/generate/preview-cost", access.Pricing, s.previewCost},
		{"GET", prefix + "/generate/{request_id}", access.ForAccount, s.getGeneration},
		{"POST", prefix + "/generate/{request_id}/cancel", access.ForAccount, s.cancelGeneration},
		{"GET", prefix + "/generate/{request_id}/events", access.ForAccount, s.streamGeneration},
		{"GET", prefix + "/generate/{request_id}/webhook-attempts", access.ForAccount, s.listWebhookAttempts},
		{"POST", prefix + "/generate/{request_id}/webhook-attempts/redeliver", access.ForAccount, s.redeliverWebhook},
		{"GET", prefix + "/generations", access.ForAccount, s.listGenerations},
		{"GET", prefix + "/webhook-secret", access.Managing, s.getWebhookSecret},
		{"POST", prefix + "/webhook-secret/rotate", access.Managing, s.rotateWebhookSecret},

		{"GET", prefix + "/uploads", access.ForAccount, s.listUploads},
		{"POST", prefix + "/uploads", access.ForAccount, s.createUpload},
		{"GET", prefix + "/uploads/{upload_id}", access.ForAccount, s.getUpload},
		{"DELETE", prefix + "/uploads/{upload_id}", access.ForAccount, s.deleteUpload},
		{"GET", prefix + "/library", access.ForAccounts, s.listLibrary},
		{"GET", prefix + "/library/{library_id}", access.ForAccount, s.getLibraryItem},
		{"DELETE", prefix + "/library/{library_id}", access.ForAccount, s.deleteLibraryItem},
		{"PUT", prefix + "/library/{library_id}/favorite", access.ForAccount, s.addFavorite},
		{"DELETE", prefix + "/library/{library_id}/favorite", access.ForAccount, s.removeFavorite},
		{"GET", "/media/{kind}/{id}/{variant}", access.Open, s.getMedia},
		{"GET", "/media/{kind}/{id}/{variant}/{name}", access.Open, s.getMedia},

		{"GET", prefix + "/openapi.json", access.Open, s.getDocument},
		{"GET", "/.well-known/jwks.json", access.Open, s.getKeys},
		{"GET", "/catalog/{picture}", access.Open, s.getPicture},
	})
}
