// Package openai serves the OpenAI-compatible interface under /v1: models,
// images, speech and videos. Every tool that the caller may use is a model. A
// request creates an ordinary run, with the checks, the price and the limits of
// POST /api/v2/generate, and the response waits for its end. Only the parameters,
// the responses and the errors have the form of the OpenAI API.
package openai

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/access"
	"atelier/internal/web/api/newrun"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/runwait"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// Handler serves the endpoints under /v1.
type Handler struct {
	Runs    *generation.Service
	NewRuns *newrun.Receiver
	Waiter  *runwait.Waiter
	Library *library.Library
	Links   library.URLSigner
	Blobs   blob.Store
	Catalog *catalog.Catalog
	Streams *rest.Streams
	JSON    rest.JSONLimits
	Now     func() time.Time
	// KeepRuns says that a run goes on after its client has left.
	KeepRuns bool
}

// plugin is the value of the attribute plugin of runs that this interface
// creates.
const plugin = "openai"

// projectHeader is the header in which the official clients send the setting
// project. It names the team here.
const projectHeader = "Openai-Project"

// Routes returns the routes of all endpoints.
func (h *Handler) Routes() []rest.Route {
	all := []rest.Route{
		rest.NewRoute("GET /v1/models", access.Catalog, h.listModels),
		rest.NewRoute("GET /v1/models/{model...}", access.Catalog, h.getModel),
		rest.NewRoute("POST /v1/images/generations", access.Generating, h.generateImages),
		rest.NewRoute("POST /v1/images/edits", access.Generating, h.editImages),
		rest.NewRoute("POST /v1/images/variations", access.Generating, h.varyImage),
		rest.NewRoute("POST /v1/audio/speech", access.Generating, h.createSpeech),
		rest.NewRoute("POST /v1/videos", access.Generating, h.createVideo),
		rest.NewRoute("GET /v1/videos", access.ForAccount, h.listVideos),
		rest.NewRoute("GET /v1/videos/{video_id}", access.ForAccount, h.getVideo),
		rest.NewRoute("DELETE /v1/videos/{video_id}", access.ForAccount, h.deleteVideo),
		rest.NewRoute("GET /v1/videos/{video_id}/content", access.ForAccount, h.getVideoContent),
		{Path: "/v1/{path...}", Rule: access.Open, Handle: unknownPath},
	}
	for i := range all {
		all[i].WriteError = writeError
		all[i].TeamHeader = projectHeader
	}
	return all
}

func unknownPath(http.ResponseWriter, *http.Request) error {
	return fault.New(fault.NotFound, "This address does not exist. The endpoints are models, images/generations, images/edits, images/variations, audio/speech and videos.")
}

// errorBody is the error of a response.
type errorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
	// Atelier is the error as /api/v2 has it. It is not part of the OpenAI API.
	Atelier wire.ErrorBody `json:"atelier"`
}

// errorKind is the type, the code and the status of an error in the OpenAI API.
// Zero values stand for the usual ones.
type errorKind struct {
	kind   string
	code   string
	status int
}

// errorKinds are the errors that OpenAI names differently from their code here.
var errorKinds = map[fault.Code]errorKind{
	fault.Unauthenticated:        {code: "invalid_api_key"},
	fault.TokenInvalid:           {code: "invalid_api_key"},
	fault.RateLimited:            {kind: "rate_limit_error", code: "rate_limit_exceeded"},
	fault.ActiveRunCap:           {kind: "rate_limit_error", code: "rate_limit_exceeded"},
	fault.InsufficientBalance:    {kind: "insufficient_quota", code: "insufficient_quota", status: http.StatusTooManyRequests},
	fault.ContentPolicyViolation: {code: "content_policy_violation", status: http.StatusBadRequest},
	fault.NumResultsLimit:        {code: "invalid_value"},
}

// refusal is an error of this interface that has no code of its own in /api/v2.
type refusal struct {
	why *fault.Error
	as  errorKind
	// final says that the same request would get the same error.
	final bool
}

func (r *refusal) Error() string { return r.why.Error() }
func (r *refusal) Unwrap() error { return r.why }

// describeError converts an error to the form of the OpenAI API. isFinal says
// that the client should not send the request again.
func describeError(err error, traceID string) (status int, body errorBody, isFinal bool) {
	f := rest.FaultOf(err)
	as := errorKinds[f.Code]
	isFinal = !rest.IsRetryable(f)
	if own, ok := errors.AsType[*refusal](err); ok {
		as = own.as
		isFinal = own.final || isFinal
	}
	status = cmp.Or(as.status, httpd.Status[f.Code])
	usual := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		usual = "server_error"
	}
	body = errorBody{
		Message: f.Message,
		Type:    cmp.Or(as.kind, usual),
		Code:    cmp.Or(as.code, strings.ToLower(string(f.Code))),
		Atelier: rest.ErrorBody(f, traceID),
	}
	body.Atelier.Retryable = !isFinal
	switch {
	case len(f.Fields) > 0:
		param := strings.TrimPrefix(f.Fields[0].Path, "inputs.")
		body.Param = &param
		if f.Message != f.Fields[0].Message {
			body.Message = param + ": " + f.Fields[0].Message
		}
	case f.Code == fault.NumResultsLimit:
		param := "n"
		body.Param = &param
	case f.Code == fault.ContentPolicyViolation:
		if path, ok := f.Details["field"].(string); ok {
			param := strings.TrimPrefix(path, "inputs.")
			body.Param = &param
		}
	}
	return status, body, isFinal
}

// writeError responds with an error in the form of the OpenAI API. The header
// x-should-retry tells the official clients whether to send the request again;
// without it they do so after every 409, 429 and 5xx.
func writeError(w http.ResponseWriter, traceID string, err error) {
	status, body, isFinal := describeError(err, traceID)
	w.Header().Set("X-Should-Retry", strconv.FormatBool(!isFinal))
	rest.SetErrorHeaders(w.Header(), status, rest.FaultOf(err))
	rest.SendError(w, status, struct {
		Error errorBody `json:"error"`
	}{body})
}

// notFoundModel returns the error for a model that does not exist, or that the
// caller must not use.
func notFoundModel(model string) error {
	return &refusal{
		why: fault.New(fault.NotFound, "The model "+strconv.Quote(model)+" does not exist, or you do not have access to it.").On("model"),
		as:  errorKind{code: "model_not_found"},
	}
}

// failureCodes are the errors of requests whose run failed, where that is not
// INTERNAL.
var failureCodes = map[wire.GenerationErrorCode]fault.Code{
	wire.GenerationErrorCodeCONTENTPOLICYVIOLATION: fault.ContentPolicyViolation,
	wire.GenerationErrorCodeENGINEUNAVAILABLE:      fault.Unavailable,
}

// endError returns the error for a run that has ended without results, or nil
// if it has succeeded.
func endError(rec generation.Record) error {
	switch {
	case rec.State == run.Succeeded:
		return nil
	case rec.State == run.Cancelled:
		return &refusal{
			why:   fault.New(fault.PreconditionFailed, "The run was cancelled."),
			as:    errorKind{code: "run_cancelled", status: http.StatusConflict},
			final: true,
		}
	}
	code, ok := failureCodes[wire.GenerationErrorCode(rec.ErrorCode)]
	if !ok {
		code = fault.Internal
	}
	as := errorKinds[code]
	as.code = strings.ToLower(rec.ErrorCode)
	return &refusal{why: fault.New(code, rec.ErrorText), as: as, final: true}
}
