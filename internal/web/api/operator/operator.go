// Package operator serves /api/v2/operator: the state of the installation, and
// the work and accounts of all people, for operators. The responses contain no
// prompts, inputs or results.
package operator

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"atelier/internal/account/operator"
	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/money/ledger"
	"atelier/internal/run/run"
	"atelier/internal/web/access"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Installation describes the installation and the node that answers.
type Installation struct {
	Version      string
	Started      time.Time // start of this process
	StoresInS3   bool      // files are stored in S3 instead of a folder
	StorageLimit int64     // most bytes that may be stored; 0 means no limit
	// StorageState returns the state of the disks of this node.
	StorageState func() string
	Settings     []Setting
}

// Setting is a setting in force.
type Setting struct {
	Name   string
	Value  string // with secrets masked
	Source string // "default", "file", "environment" or "flag"
	Help   string
	Secret bool // the whole value is a secret
	IsSet  bool // the value is not empty
}

// Handler serves the API endpoints for operators.
type Handler struct {
	Operator     *operator.Service
	Catalog      *catalog.Catalog
	Installation Installation
	Pages        rest.Pager
	JSON         rest.JSONLimits
	// MaxKeyLength is the maximum length of the Idempotency-Key header.
	MaxKeyLength int
}

// Routes returns the routes for operators.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/operator/status", access.Operating, h.getStatus),
		rest.NewRoute("GET /api/v2/operator/runs", access.Operating, h.listRuns),
		rest.NewRoute("POST /api/v2/operator/runs/{request_id}/cancel", access.Operating, h.cancelRun),
		rest.NewRoute("GET /api/v2/operator/people", access.Operating, h.listPeople),
		rest.NewRoute("GET /api/v2/operator/companies", access.Operating, h.listCompanies),
		rest.NewRoute("POST /api/v2/operator/grants", access.Operating, h.createGrant),
		rest.NewRoute("GET /api/v2/operator/settings", access.Operating, h.listSettings),
	}
}

// getStatus serves GET /api/v2/operator/status: it returns the state of the
// installation.
func (h *Handler) getStatus(w http.ResponseWriter, r *http.Request) error {
	status, err := h.Operator.ReadStatus(r.Context())
	if err != nil {
		return err
	}
	return rest.ReplyCompressed(w, r, h.asStatus(status))
}

// runStates has the state of runs for each value of the parameter status.
var runStates = map[wire.OperatorRunFilter]run.State{
	"":                            "",
	wire.OperatorRunFilterWaiting: run.Queued,
	wire.OperatorRunFilterRunning: run.Running,
}

// listRuns serves GET /api/v2/operator/runs: it lists the runs of all accounts
// that have not ended, oldest first.
func (h *Handler) listRuns(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	filter := wire.OperatorRunFilter(call.Params.ReadText("status"))
	state, known := runStates[filter]
	if !known {
		call.Params.AddProblem("status", "Must be waiting or running.")
	}
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("operator runs", call.Principal.PersonID, string(filter)))
	if err != nil {
		return err
	}
	after := run.Cursor{Created: time.Unix(0, 0)}
	if page.After != nil {
		at, err := page.AfterTime()
		if err != nil {
			return err
		}
		after = run.Cursor{Created: at, ID: page.After[1]}
	}

	runs, err := h.Operator.ListWork(r.Context(), state, after, page.Limit+1)
	if err != nil {
		return err
	}
	runs, hasMore, next := rest.Cut(page, runs, func(one operator.Work) (string, string) { return rest.Micros(one.Created), one.ID })
	tools, err := h.Catalog.ToolNames(r.Context(), rest.Convert(runs, func(one operator.Work) string { return one.ToolID }))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, wire.OperatorRunList{
		Data:       rest.Convert(runs, func(one operator.Work) wire.OperatorRun { return asRun(one, tools) }),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// cancelRun serves POST /api/v2/operator/runs/{request_id}/cancel: it cancels a
// run of any account.
func (h *Handler) cancelRun(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("request_id")
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return run.ErrNotFound
	}
	one, hadEnded, err := h.Operator.CancelRun(r.Context(), rest.PrincipalOf(r), id)
	if err != nil {
		return err
	}

	status := http.StatusAccepted
	if hadEnded {
		status = http.StatusOK
	}
	tools, err := h.Catalog.ToolNames(r.Context(), []string{one.ToolID})
	if err != nil {
		return err
	}
	return rest.Reply(w, status, asRun(one, tools))
}

// maxSearch is the maximum length of a search text, in characters.
const maxSearch = 200

// readSearch reads the parameter q.
func readSearch(p *rest.Params) string {
	text := p.ReadText("q")
	if utf8.RuneCountInString(text) > maxSearch || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		p.AddProblem("q", fmt.Sprintf("Must be a text of at most %d characters.", maxSearch))
		return ""
	}
	return text
}

// listPeople serves GET /api/v2/operator/people: it lists people by e-mail
// address.
func (h *Handler) listPeople(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	text := readSearch(call.Params)
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("operator people", call.Principal.PersonID, text))
	if err != nil {
		return err
	}
	after := ""
	if page.After != nil {
		after = page.After[0]
	}

	people, err := h.Operator.ListPeople(r.Context(), text, after, page.Limit+1)
	if err != nil {
		return err
	}
	people, hasMore, next := rest.Cut(page, people, func(p operator.Person) (string, string) { return p.Email, p.ID })
	return rest.Reply(w, http.StatusOK, wire.OperatorPersonList{
		Data:       rest.Convert(people, asPerson),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// listCompanies serves GET /api/v2/operator/companies: it lists companies by
// id.
func (h *Handler) listCompanies(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	text := readSearch(call.Params)
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("operator companies", call.Principal.PersonID, text))
	if err != nil {
		return err
	}
	after := ""
	if page.After != nil {
		after = page.After[1]
	}

	companies, err := h.Operator.ListCompanies(r.Context(), text, after, page.Limit+1)
	if err != nil {
		return err
	}
	companies, hasMore, next := rest.Cut(page, companies, func(c operator.Company) (string, string) { return "", c.ID })
	return rest.Reply(w, http.StatusOK, wire.OperatorCompanyList{
		Data:       rest.Convert(companies, asCompany),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// maxReason is the maximum length of the reason of a grant, in bytes.
const maxReason = 500

// createGrant serves POST /api/v2/operator/grants: it gives tokens to an
// account, or takes them back.
func (h *Handler) createGrant(w http.ResponseWriter, r *http.Request) error {
	key, err := rest.ReadIdempotencyKey(r.Header, h.MaxKeyLength)
	if err != nil {
		return err
	}
	if key == "" {
		return fault.New(fault.Invalid, "An Idempotency-Key header is required.").On("Idempotency-Key")
	}
	req, err := rest.Decode[wire.OperatorGrantRequest](w, r, h.JSON)
	if err != nil {
		return err
	}
	if reason := strings.TrimSpace(req.Reason); reason == "" || len(reason) > maxReason {
		return rest.InvalidFields().Field("reason", fmt.Sprintf("Must have 1 to %d bytes of text.", maxReason))
	}

	grant, err := h.Operator.GrantTokens(r.Context(), rest.PrincipalOf(r), ledger.GrantRequest{
		Key:       key,
		AccountID: req.AccountID,
		Tokens:    req.Tokens,
		Note:      strings.TrimSpace(req.Reason),
	})
	if err != nil {
		return err
	}
	if grant.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	return rest.Reply(w, http.StatusCreated, wire.OperatorGrant{
		ID:      grant.ID,
		Account: asAccount(grant.Account),
		Tokens:  grant.Tokens,
		Reason:  grant.Note,
		Balance: grant.Balance,
		Created: rest.Moment(grant.Created),
	})
}

// listSettings serves GET /api/v2/operator/settings: it lists the settings in
// force, without secrets.
func (h *Handler) listSettings(w http.ResponseWriter, r *http.Request) error {
	return rest.ReplyCompressed(w, r, wire.OperatorSettingList{Data: rest.Convert(h.Installation.Settings, asSetting)})
}
