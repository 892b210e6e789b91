// Package api serves /api/v2: it decodes requests, asks the capabilities, and
// writes answers and errors in the shapes of the OpenAPI document.
//
// Every route needs a credential unless the table says that it is open. Every
// answer that is no success has the error envelope, whatever went wrong.
package api

import (
	"net/http"
	"time"

	"atelier/internal/blob"
	"atelier/internal/catalog"
	"atelier/internal/cursor"
	"atelier/internal/sqldb"
	"atelier/internal/throttle"
)

// Parts are what the API is made of.
type Parts struct {
	DB      *sqldb.DB
	Blobs   blob.Store
	Catalog *catalog.Catalog
	Cursors cursor.Sealer
	BaseURL string
	Limits  Limits
	Now     func() time.Time
}

// Limits bound what a caller may send and ask for.
type Limits struct {
	JSONBytes         int64
	JSONDepth         int
	PageSize          int
	ToolsPageDefault  int
	RequestsPerMinute int
}

// Server answers the API's requests.
type Server struct {
	Parts
	persons   *throttle.Buckets // of known callers
	addresses *throttle.Buckets // of everybody else
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
		document:  doc,
	}, nil
}

// routes lists all that is served. A route without open needs a credential.
func (s *Server) routes() []route {
	return []route{
		{method: "GET", path: prefix + "/tools", do: s.listTools},
		{method: "GET", path: prefix + "/tools/{tool_id}", do: s.getTool},
		{method: "GET", path: prefix + "/tool-tags", do: s.listToolTags},
		{method: "GET", path: prefix + "/kits", do: s.listKits},
		{method: "GET", path: prefix + "/openapi.json", open: true, do: s.getDocument},
		{method: "GET", path: "/catalog/{picture}", open: true, do: s.getPicture},
	}
}
