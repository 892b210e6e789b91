// Package scim serves SCIM 2.0 (RFC 7643, RFC 7644): by it a company's own
// directory, Entra ID or Okta, manages the company's people and teams.
//
//	/scim/v2/Users    people and their membership    ── provisioning.User
//	/scim/v2/Groups   teams and who is in them       ── provisioning.Group
//
// A resource is read into an object whose names are those of the schema
// (resource.go), changed there (patch.go) and compared there (filter.go); what
// it says goes to package directory, in one transaction for each request.
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

// Parts are what the edge is made of.
type Parts struct {
	Provisioning *provisioning.Service
	BaseURL      string
	// RequestsPerMinute of one company, or of one address without a token.
	RequestsPerMinute int
	Now               func() time.Time
}

// Server answers the requests of directories.
type Server struct {
	Parts
	base      string // of all addresses
	companies *throttle.Buckets
	addresses *throttle.Buckets
}

// Prefix is where the edge is served.
const Prefix = "/scim/v2"

// What a request may be.
const (
	maxBody  = 1 << 20
	maxNest  = 32
	maxCount = 200
	defCount = 100
)

// New makes the handler for everything under /scim/.
func New(p Parts) http.Handler {
	s := &Server{
		Parts: p, base: p.BaseURL + Prefix,
		companies: throttle.New(p.RequestsPerMinute, p.Now), addresses: throttle.New(p.RequestsPerMinute, p.Now),
	}
	return s.handler()
}

// handler answers a request of a directory that was let in.
type handler func(w http.ResponseWriter, r *http.Request, from provisioning.Client) error

type route struct {
	method, path string
	do           handler
}

func (s *Server) routes() []route {
	return []route{
		{"GET", "/ServiceProviderConfig", s.getConfig},
		{"GET", "/ResourceTypes", s.listKinds},
		{"GET", "/ResourceTypes/{id}", s.getKind},
		{"GET", "/Schemas", s.listSchemas},
		{"GET", "/Schemas/{id}", s.getSchema},

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
		{"POST", "/Bulk", unsupported},
		{"GET", "/Me", unsupported},
	}
}

// unsupported answers what ServiceProviderConfig says is not there, and what it
// has no word for.
func unsupported(http.ResponseWriter, *http.Request, provisioning.Client) error {
	return &problem{status: http.StatusNotImplemented, detail: "This is not supported."}
}

// handler builds the tree of routes. Paths that exist answer other methods with
// 405, all else is 404.
func (s *Server) handler() http.Handler {
	paths := map[string]map[string]handler{}
	for _, rt := range s.routes() {
		if paths[rt.path] == nil {
			paths[rt.path] = map[string]handler{}
		}
		paths[rt.path][rt.method] = rt.do
	}
	mux := http.NewServeMux()
	for path, methods := range paths {
		allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		mux.Handle(Prefix+path, s.serve(Prefix+path, func(w http.ResponseWriter, r *http.Request, from provisioning.Client) error {
			if do, ok := methods[r.Method]; ok {
				return do(w, r, from)
			}
			w.Header().Set("Allow", allowed)
			return &problem{status: http.StatusMethodNotAllowed, detail: "This address takes " + allowed + " only."}
		}))
	}
	mux.Handle("/", s.serve("/scim/unknown", func(http.ResponseWriter, *http.Request, provisioning.Client) error {
		return &problem{status: http.StatusNotFound, detail: "There is nothing at this address."}
	}))
	return mux
}

// serve wraps a handler with what all of them need.
func (s *Server) serve(path string, do handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httpd.RecordOf(r.Context())
		rec.Route = path
		err := s.attempt(do, rec, w, r)
		if err == nil {
			return
		}
		rec.Err = err
		_, decided := errors.AsType[*fault.Error](err)
		_, refused := errors.AsType[*problem](err)
		if !decided && !refused && r.Context().Err() != nil {
			rec.Left = true
		}
		if httpd.Started(w) || rec.Left {
			panic(http.ErrAbortHandler)
		}
		writeError(w, err)
	})
}

// attempt runs the handler for a directory that may. A panic is an error like
// any other.
func (s *Server) attempt(do handler, rec *httpd.Record, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	from, err := s.Provisioning.AuthenticateClient(r.Context(), bearer(r), rec.Addr.String())
	bucket := s.addresses
	key := httpd.AddressKey(rec.Addr)
	if from.CompanyID() != "" {
		bucket = s.companies
		key = from.CompanyID()
	}
	if wait, ok := bucket.Take(key); !ok {
		return fault.TooMany("Too many requests. Wait a little.", bucket.PerMinute(), time.Minute, wait)
	}
	if err != nil {
		return err
	}
	rec.Reauthorize = func(ctx context.Context) error {
		_, err := s.Provisioning.AuthenticateClient(ctx, bearer(r), rec.Addr.String())
		return err
	}
	return do(w, r.WithContext(sqldb.WithGuard(r.Context(), from.Reauthorize)), from)
}

// bearer takes the token out of the Authorization header (RFC 6750 section 2.1),
// "" where there is none or more than one.
func bearer(r *http.Request) string {
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

// problem is an error of the protocol.
type problem struct {
	status   int
	scimType string
	detail   string
}

// The scimTypes (RFC 7644 section 3.12).
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

// reasons are what faults mean that say more than their code does.
var reasons = map[any]problem{
	"taken":      {http.StatusConflict, uniqueness, ""},
	"too_many":   {http.StatusBadRequest, tooMany, ""},
	"last_admin": {http.StatusConflict, "", ""},
}

// problemOf says an error in the words of the protocol. What is no fault is an
// accident: the caller learns that it happened, the log learns the rest.
func problemOf(err error) problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return *p
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return problem{http.StatusInternalServerError, "", "Something went wrong on our side."}
	}
	p, ok := reasons[f.Details["reason"]]
	if !ok {
		p.status = httpd.Status[f.Code]
		if f.Code == fault.Invalid {
			p.scimType = invalidValue
		}
	}
	p.detail = f.Message
	return p
}

// awayFor is what a caller is told to wait when nobody knows how long something
// will be away.
const awayFor = 2 * time.Second

func writeError(w http.ResponseWriter, err error) {
	p := problemOf(err)
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	f, _ := errors.AsType[*fault.Error](err)
	if f != nil && (f.RetryAfter > 0 || f.Code == fault.Unavailable) {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(max(f.RetryAfter, awayFor).Seconds()))))
	}
	body := object{"schemas": []string{errorMessage}, "status": strconv.Itoa(p.status), "detail": p.detail}
	if p.scimType != "" {
		body["scimType"] = p.scimType
	}
	if reply(w, p.status, body) != nil {
		panic("an error is made of texts")
	}
}

// reply writes an answer.
func reply(w http.ResponseWriter, status int, v object) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/scim+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
	return nil
}

// body reads a request's JSON object, as strictly as the API does.
func body(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/scim+json" && kind != "application/json" {
		return nil, fault.New(fault.UnsupportedMediaType, "Send the body as application/scim+json.")
	}
	text, err := httpd.ReadJSON(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	if err := httpd.WellFormed(text, maxNest); err != nil {
		return nil, refuse(invalidSyntax, "The body is not JSON that can be read.")
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil || v == nil {
		return nil, refuse(invalidSyntax, "The body must be an object.")
	}
	return v, nil
}

func (s *Server) getConfig(w http.ResponseWriter, _ *http.Request, _ provisioning.Client) error {
	return reply(w, http.StatusOK, providerConfig(s.base))
}

func (s *Server) listKinds(w http.ResponseWriter, r *http.Request, _ provisioning.Client) error {
	var all []any
	for _, k := range kinds {
		all = append(all, k.asDocument(s.base))
	}
	return s.listDocuments(w, r, all)
}

func (s *Server) getKind(w http.ResponseWriter, r *http.Request, _ provisioning.Client) error {
	for _, k := range kinds {
		if k.name == r.PathValue("id") {
			return reply(w, http.StatusOK, k.asDocument(s.base))
		}
	}
	return fault.New(fault.NotFound, "There is no such resource type.")
}

func (s *Server) listSchemas(w http.ResponseWriter, r *http.Request, _ provisioning.Client) error {
	var all []any
	for _, one := range schemas() {
		all = append(all, one.asDocument(s.base))
	}
	return s.listDocuments(w, r, all)
}

func (s *Server) getSchema(w http.ResponseWriter, r *http.Request, _ provisioning.Client) error {
	for _, one := range schemas() {
		if strings.EqualFold(one.id, r.PathValue("id")) {
			return reply(w, http.StatusOK, one.asDocument(s.base))
		}
	}
	return fault.New(fault.NotFound, "There is no such schema.")
}

func schemas() []schema { return []schema{users.core, *users.extension, groups.core} }

// listDocuments lists what describes the service. It takes no filter (RFC 7644
// section 4).
func (s *Server) listDocuments(w http.ResponseWriter, r *http.Request, all []any) error {
	if r.URL.Query().Has("filter") {
		return &problem{status: http.StatusForbidden, detail: "This list takes no filter."}
	}
	return replyList(w, 1, len(all), all)
}
