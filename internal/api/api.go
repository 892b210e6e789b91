// Package api serves /api/v2: it decodes requests, asks the capabilities, and
// writes answers and errors in the shapes of the OpenAPI document.
//
// Every route names the rule by which package access lets requests in. Every
// answer that is no success has the error envelope, whatever went wrong.
package api

import (
	"net/http"
	"time"

	"atelier/internal/access"
	"atelier/internal/blob"
	"atelier/internal/catalog"
	"atelier/internal/cursor"
	"atelier/internal/directory"
	"atelier/internal/identity"
	"atelier/internal/throttle"
)

// Parts are what the API is made of.
type Parts struct {
	Gate      *access.Gate
	Desk      *identity.Desk
	Directory *directory.Directory
	Blobs     blob.Store
	Catalog   *catalog.Catalog
	Cursors   cursor.Sealer
	BaseURL   string
	Limits    Limits
	Now       func() time.Time
}

// Limits bound what a caller may send and ask for.
type Limits struct {
	JSONBytes         int64
	JSONDepth         int
	PageSize          int
	PageDefault       int
	ToolsPageDefault  int
	RequestsPerMinute int
}

// Server answers the API's requests.
type Server struct {
	Parts
	persons   *throttle.Buckets // of known callers
	addresses *throttle.Buckets // of everybody else
	guesses   *throttle.Buckets // of device codes, by address
	pages     pages
	document  []byte
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
	return &Server{
		Parts:     p,
		persons:   throttle.New(p.Limits.RequestsPerMinute, p.Now),
		addresses: throttle.New(p.Limits.RequestsPerMinute, p.Now),
		guesses:   throttle.New(guessesPerMinute, p.Now),
		document:  doc,
	}, nil
}

// routes lists all that is served. A route without a rule lets nobody in.
func (s *Server) routes() []route {
	return append(s.companyRoutes(), []route{
		{"POST", prefix + "/auth/device/start", access.Open, s.startDevice},
		{"GET", prefix + "/auth/device/poll", access.Open, s.pollDevice},
		{"POST", prefix + "/auth/device/poll", access.Open, s.pollDeviceByBody},
		{"POST", prefix + "/auth/token/refresh", access.Open, s.refreshToken},
		{"POST", prefix + "/auth/device/revoke", access.LeavingDevice, s.revokeDevice},
		{"POST", prefix + "/auth/sign-out-everywhere", access.Leaving, s.signOutEverywhere},

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

		{"GET", prefix + "/openapi.json", access.Open, s.getDocument},
		{"GET", "/.well-known/jwks.json", access.Open, s.getKeys},
		{"GET", "/catalog/{picture}", access.Open, s.getPicture},
	}...)
}
