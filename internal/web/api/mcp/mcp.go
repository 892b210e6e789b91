// Package mcp serves the Model Context Protocol at /mcp: assistants and agents
// list the tools of the catalog, run them, and read the library. A call creates
// an ordinary run, with the checks, the price and the limits of POST
// /api/v2/generate.
//
// The transport is Streamable HTTP without state on the server: each request is
// authorized on its own, on any node. Protocol versions before 2026-07-28 have
// sessions; their id only tells the requests of one client apart. It makes a
// call that is sent twice one run, and lets notifications/cancelled name the run
// of another request.
package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"atelier/internal/account/profile"
	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/toolschema"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/web/access"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/newrun"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/runwait"
	"atelier/internal/web/httpd"
)

// Settings are the operator's settings for this interface.
type Settings struct {
	// Kits are the kits whose tools are listed to clients that choose none. If
	// it is empty, all tools are listed, up to MaxTools.
	Kits     []string
	MaxTools int
	// InlineBytes is the size up to which files are part of a response, all
	// together. Further results are links.
	InlineBytes int64
	// BodyBytes limits the size of a request, with the files in it.
	BodyBytes int64
}

// Handler serves /mcp.
type Handler struct {
	Settings Settings
	Runs     *generation.Service
	Waiter   *runwait.Waiter
	Profiles *profile.Service
	Library  *library.Library
	Links    library.URLSigner
	Blobs    blob.Store
	Catalog  *catalog.Catalog
	Files    *filebody.Receiver
	Depth    int // the maximum depth of JSON
	BaseURL  string
	HasOAuth bool // apps can be authorized here
	Version  string
	Now      func() time.Time

	transport http.Handler
}

// Routes returns the route of the interface.
func (h *Handler) Routes() []rest.Route {
	server := sdk.NewServer(&sdk.Implementation{Name: "atelier", Title: "Atelier", Version: h.Version, WebsiteURL: h.BaseURL}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	server.AddTool(&sdk.Tool{Name: anyTool, InputSchema: toolschema.Schema{"type": "object"}}, h.callTool)
	server.AddReceivingMiddleware(h.handleMethods)
	h.transport = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless:                    true,
		MaxRequestBodyBytes:          h.Settings.BodyBytes,
		PropagateRequestCancellation: true,
		// The service is reached by the host names that its operator chose, and
		// every request has a credential that pages of other sites do not have.
		DisableLocalhostProtection: true,
	})
	route := rest.NewRoute("POST /mcp", access.ForAccount, h.serve)
	route.WriteError = h.writeError
	return []rest.Route{route}
}

const instructions = `Atelier makes pictures, videos, sound and 3D models with the tools of this installation. Each tool is an MCP tool; ` +
	`search_tools finds those that are not listed, and run_tool runs them. Runs cost tokens: preview_cost says how many, get_balance how many are left. ` +
	`Results have library ids, which inputs for files accept.`

// metadataPath is the path of the metadata of the protected resource (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource/mcp"

// writeError responds with an error. A client without a valid credential is told
// where the authorization server is described.
func (h *Handler) writeError(w http.ResponseWriter, traceID string, err error) {
	if h.HasOAuth {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+h.BaseURL+metadataPath+`"`)
	}
	rest.WriteError(w, traceID, err)
}

// exchange is one request of the transport, for the methods that it calls.
type exchange struct {
	http *http.Request
	call *rest.Call
	kits []string // that the client has chosen
	tool string   // that a call names
	// key is the idempotency key of a call, or "" if the client has no session.
	key string
	// keepRun says that the run goes on if the connection is lost.
	keepRun bool
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

const (
	sessionHeader  = "Mcp-Session-Id"
	versionHeader  = "Mcp-Protocol-Version"
	sessionless    = "2026-07-28" // the first version without sessions
	maxSessionSize = 100
	writeGrace     = time.Minute
)

// message is the part of a JSON-RPC message that is read before the transport
// does.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// serve serves POST /mcp.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	h.Files.ExtendDeadlines(w, r, h.Settings.BodyBytes)
	body, err := httpd.ReadBody(http.MaxBytesReader(w, r.Body, h.Settings.BodyBytes))
	if err != nil {
		return err
	}
	if err := httpd.CheckJSON(body, h.Depth); err != nil {
		return err
	}
	var m message
	_ = json.Unmarshal(body, &m) // the transport refuses what is no message
	session := r.Header.Get(sessionHeader)
	if len(session) > maxSessionSize {
		return fault.New(fault.Invalid, "The session id is too long.").On(sessionHeader)
	}

	x := &exchange{http: r, call: call, kits: r.URL.Query()["kits"], keepRun: r.Header.Get(versionHeader) < sessionless}
	switch {
	case m.Method == "initialize":
		w.Header().Set(sessionHeader, rand.Text())
	case m.Method == "notifications/cancelled" && session != "":
		if err := h.cancelCall(x, callKey(call, session, m.Params.RequestID)); err != nil {
			return err
		}
	case session != "" && len(m.ID) > 0:
		x.key = callKey(call, session, m.ID)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(h.Now().Add(h.Waiter.Limit + writeGrace)) // fails only on connections without deadlines
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	r.Body = io.NopCloser(bytes.NewReader(body))
	rest.VaryByCaller(w.Header())
	h.transport.ServeHTTP(w, r)
	return nil
}

// callKey returns the idempotency key of a request of a session.
func callKey(call *rest.Call, session string, id json.RawMessage) string {
	return "mcp:" + newrun.Fingerprint(call.Principal.AccountID, session, string(id))
}

// cancelCall cancels the run that another request of the session has created.
// The notification may come too early or too late; then nothing happens.
func (h *Handler) cancelCall(x *exchange, key string) error {
	ctx := x.http.Context()
	known, err := h.Runs.FindKey(ctx, x.call.Principal.PersonID, key)
	if err != nil || known == nil {
		return err
	}
	_, _, err = h.Runs.CancelRun(ctx, x.call.Principal, known.RunID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// anyTool is the name of the only tool that the SDK knows. Tools differ between
// callers, so calls of all tools are passed to it.
const anyTool = "any"

// handleMethods answers the methods about tools, which differ between callers.
// The SDK answers the others.
func (h *Handler) handleMethods(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch r := req.(type) {
		case *sdk.ListToolsRequest:
			return h.listTools(ctx, r.Params)
		case *sdk.CallToolRequest:
			exchangeOf(ctx).tool = r.Params.Name
			r.Params.Name = anyTool
		}
		return next(ctx, method, req)
	}
}
