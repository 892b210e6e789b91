// Package scim serves SCIM 2.0 (RFC 7643, RFC 7644), the protocol by which a
// company's identity provider, such as Entra ID or Okta, manages the company's
// people and teams.
//
//	/scim/v2/Users    people and their memberships   ── provisioning.User
//	/scim/v2/Groups   teams and their members        ── provisioning.Group
//
// A resource is a JSON object with the attributes of its schema: resource.go
// reads and selects them, patch.go changes them, filter.go compares them.
// Package provisioning stores the resource, in one transaction for each
// request.
package scim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"atelier/internal/account/provisioning"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/throttle"
	"atelier/internal/web/httpd"
)

// Parts are the dependencies and settings of the SCIM handler.
type Parts struct {
	Provisioning *provisioning.Service
	BaseURL      string
	// RequestsPerMinute is the rate limit of a company, and of an IP address
	// that sends no valid SCIM token.
	RequestsPerMinute int
	Now               func() time.Time
}

// Server serves the SCIM requests of identity providers.
type Server struct {
	Parts
	baseURL   string // base URL of all resources
	companies *throttle.Buckets
	addresses *throttle.Buckets
}

// Prefix is the URL path under which SCIM is served.
const Prefix = "/scim/v2"

// Limits on a request: bytes and JSON nesting of the body, and the maximum and
// default size of a page.
const (
	maxBody      = 1 << 20
	maxNesting   = 32
	maxCount     = 200
	defaultCount = 100
)

// New returns the handler for all paths under /scim/.
func New(p Parts) http.Handler {
	s := &Server{
		Parts: p, baseURL: p.BaseURL + Prefix,
		companies: throttle.New(p.RequestsPerMinute, p.Now), addresses: throttle.New(p.RequestsPerMinute, p.Now),
	}
	return s.newHandler()
}

// handler serves a request of an authenticated identity provider.
type handler func(w http.ResponseWriter, r *http.Request, client provisioning.Client) error

type route struct {
	method, path string
	do           handler
}

func (s *Server) listRoutes() []route {
	about := discovery{s.baseURL}
	return []route{
		{"GET", "/ServiceProviderConfig", about.getConfig},
		{"GET", "/ResourceTypes", about.listResourceTypes},
		{"GET", "/ResourceTypes/{id}", about.getResourceType},
		{"GET", "/Schemas", about.listSchemas},
		{"GET", "/Schemas/{id}", about.getSchema},

		{"GET", "/Users", s.listUsers},
		{"POST", "/Users", s.createUser},
		{"POST", "/Users/.search", s.searchUsers},
		{"GET", "/Users/{id}", s.getUser},
		{"PUT", "/Users/{id}", s.replaceUser},
		{"PATCH", "/Users/{id}", s.patchUser},
		{"DELETE", "/Users/{id}", s.deleteUser},

		{"GET", "/Groups", s.listGroups},
		{"POST", "/Groups", s.createGroup},
		{"POST", "/Groups/.search", s.searchGroups},
		{"GET", "/Groups/{id}", s.getGroup},
		{"PUT", "/Groups/{id}", s.replaceGroup},
		{"PATCH", "/Groups/{id}", s.patchGroup},
		{"DELETE", "/Groups/{id}", s.deleteGroup},

		{"POST", "/.search", s.searchAll},
		{"POST", "/Bulk", replyUnsupported},
		{"GET", "/Me", replyUnsupported},
	}
}

// replyUnsupported responds with 501, for features that ServiceProviderConfig
// reports as unsupported.
func replyUnsupported(http.ResponseWriter, *http.Request, provisioning.Client) error {
	return &problem{status: http.StatusNotImplemented, detail: "This feature is not supported."}
}

// newHandler returns a handler with all routes. Known paths respond to other
// methods with 405, unknown paths with 404.
func (s *Server) newHandler() http.Handler {
	paths := map[string]map[string]handler{}
	for _, rt := range s.listRoutes() {
		if paths[rt.path] == nil {
			paths[rt.path] = map[string]handler{}
		}
		paths[rt.path][rt.method] = rt.do
	}

	mux := http.NewServeMux()
	for path, methods := range paths {
		allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		mux.Handle(Prefix+path, s.wrapHandler(Prefix+path, func(w http.ResponseWriter, r *http.Request, client provisioning.Client) error {
			if do, ok := methods[r.Method]; ok {
				return do(w, r, client)
			}
			w.Header().Set("Allow", allowed)
			return &problem{status: http.StatusMethodNotAllowed, detail: "Only " + allowed + " are allowed for this path."}
		}))
	}

	mux.Handle("/", s.wrapHandler("/scim/unknown", func(http.ResponseWriter, *http.Request, provisioning.Client) error {
		return &problem{status: http.StatusNotFound, detail: "There is no such path."}
	}))
	return mux
}

// wrapHandler returns an http.Handler that records the route and error for the
// log, and responds to errors of do.
func (s *Server) wrapHandler(path string, do handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httpd.RecordOf(r.Context())
		rec.Route = path
		err := s.runHandler(do, rec, w, r)
		if err == nil {
			return
		}
		rec.Err = err
		_, isFault := errors.AsType[*fault.Error](err)
		_, isProblem := errors.AsType[*problem](err)
		if !isFault && !isProblem && r.Context().Err() != nil {
			rec.ClientLeft = true
		}
		if httpd.ResponseStarted(w) || rec.ClientLeft {
			panic(http.ErrAbortHandler)
		}
		writeError(w, err)
	})
}

// runHandler authenticates the client, applies the rate limits and runs the
// handler. It converts a panic to an error.
func (s *Server) runHandler(do handler, rec *httpd.Record, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	client, err := s.Provisioning.AuthenticateClient(r.Context(), bearerToken(r), rec.Addr.String())
	bucket := s.addresses
	key := httpd.AddressKey(rec.Addr)
	if client.CompanyID() != "" {
		bucket = s.companies
		key = client.CompanyID()
	}
	if wait, ok := bucket.Take(key); !ok {
		return fault.TooMany("Too many requests. Try again later.", bucket.PerMinute(), time.Minute, wait)
	}
	if err != nil {
		return err
	}

	rec.Reauthorize = func(ctx context.Context) error {
		_, err := s.Provisioning.AuthenticateClient(ctx, bearerToken(r), rec.Addr.String())
		return err
	}

	return do(w, r.WithContext(sqldb.WithGuard(r.Context(), client.Reauthorize)), client)
}

// bearerToken returns the token in the Authorization header (RFC 6750 section
// 2.1). It returns "" if there is no such header or more than one.
func bearerToken(r *http.Request) string {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// problem is a SCIM error response (RFC 7644 section 3.12).
type problem struct {
	status   int
	scimType string
	detail   string
}

// Values of scimType in error responses (RFC 7644 section 3.12).
const (
	invalidFilter = "invalidFilter"
	invalidPath   = "invalidPath"
	invalidSyntax = "invalidSyntax"
	invalidValue  = "invalidValue"
	mutability    = "mutability"
	noTarget      = "noTarget"
	tooMany       = "tooMany"
	uniqueness    = "uniqueness"
)

func (p *problem) Error() string { return p.scimType + ": " + p.detail }

// problemsByReason maps the detail "reason" of a fault to the status and
// scimType of the SCIM error.
var problemsByReason = map[any]problem{
	"taken":      {http.StatusConflict, uniqueness, ""},
	"too_many":   {http.StatusBadRequest, tooMany, ""},
	"last_admin": {http.StatusConflict, "", ""},
}

// problemOf converts an error to a SCIM error. The client does not see the
// text of an error that is not a fault.
func problemOf(err error) problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return *p
	}

	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return problem{http.StatusInternalServerError, "", "An internal error occurred."}
	}

	p, ok := problemsByReason[f.Details["reason"]]
	if !ok {
		p.status = httpd.Status[f.Code]
		if f.Code == fault.Invalid {
			p.scimType = invalidValue
		}
	}

	p.detail = f.Message
	return p
}

// defaultRetryAfter is the minimum Retry-After of errors that a client can
// retry.
const defaultRetryAfter = 2 * time.Second

func writeError(w http.ResponseWriter, err error) {
	p := problemOf(err)
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}

	f, _ := errors.AsType[*fault.Error](err)
	if f != nil && (f.RetryAfter > 0 || f.Code == fault.Unavailable) {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(max(f.RetryAfter, defaultRetryAfter).Seconds()))))
	}

	body := object{"schemas": []string{errorMessage}, "status": strconv.Itoa(p.status), "detail": p.detail}
	if p.scimType != "" {
		body["scimType"] = p.scimType
	}
	if writeReply(w, p.status, body) != nil {
		panic("an error reply cannot fail to encode")
	}
}

// writeReply responds with v as JSON.
func writeReply(w http.ResponseWriter, status int, v object) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode reply: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/scim+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
	return nil
}

// readBody reads the JSON object in a request body, with the same strict
// checks as /api/v2.
func readBody(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/scim+json" && kind != "application/json" {
		return nil, fault.New(fault.UnsupportedMediaType, "The Content-Type must be application/scim+json.")
	}

	text, err := httpd.ReadBody(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	if err := httpd.CheckJSON(text, maxNesting); err != nil {
		return nil, newProblem(invalidSyntax, "The body is not valid JSON.")
	}

	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil || v == nil {
		return nil, newProblem(invalidSyntax, "The body must be a JSON object.")
	}

	return v, nil
}

// discovery serves the documents that describe the SCIM service to its clients
// (RFC 7644 section 4).
type discovery struct{ baseURL string }

// getConfig serves GET /ServiceProviderConfig.
func (d discovery) getConfig(w http.ResponseWriter, _ *http.Request, _ provisioning.Client) error {
	return writeReply(w, http.StatusOK, providerConfig(d.baseURL))
}

// listResourceTypes serves GET /ResourceTypes.
func (d discovery) listResourceTypes(w http.ResponseWriter, r *http.Request, _ provisioning.Client) error {
	var all []any
	for _, k := range resourceTypes {
		all = append(all, k.asDocument(d.baseURL))
	}
	return listDocuments(w, r, all)
}

// getResourceType serves GET /ResourceTypes/{id}.
func (d discovery) getResourceType(w http.ResponseWriter, r *http.Request, _ provisioning.Client) error {
	for _, k := range resourceTypes {
		if k.name == r.PathValue("id") {
			return writeReply(w, http.StatusOK, k.asDocument(d.baseURL))
		}
	}
	return fault.New(fault.NotFound, "There is no such resource type.")
}

// listSchemas serves GET /Schemas.
func (d discovery) listSchemas(w http.ResponseWriter, r *http.Request, _ provisioning.Client) error {
	var all []any
	for _, one := range allSchemas() {
		all = append(all, one.asDocument(d.baseURL))
	}
	return listDocuments(w, r, all)
}

// getSchema serves GET /Schemas/{id}.
func (d discovery) getSchema(w http.ResponseWriter, r *http.Request, _ provisioning.Client) error {
	for _, one := range allSchemas() {
		if strings.EqualFold(one.id, r.PathValue("id")) {
			return writeReply(w, http.StatusOK, one.asDocument(d.baseURL))
		}
	}
	return fault.New(fault.NotFound, "There is no such schema.")
}

func allSchemas() []schema { return []schema{userType.core, *userType.extension, groupType.core} }

// listDocuments responds with a list of discovery documents. Filters are not
// allowed (RFC 7644 section 4).
func listDocuments(w http.ResponseWriter, r *http.Request, all []any) error {
	if r.URL.Query().Has("filter") {
		return &problem{status: http.StatusForbidden, detail: "This list cannot be filtered."}
	}
	return replyList(w, 1, len(all), all)
}
