// Package mcpbridge connects a client of the Model Context Protocol that starts
// its servers as programs, and speaks with them over stdin and stdout, with a
// service that speaks the protocol over HTTP.
package mcpbridge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options are the two ends of the bridge.
type Options struct {
	Endpoint  string            // address of the service
	Transport http.RoundTripper // sends the credential
	In        io.ReadCloser
	Out       io.WriteCloser
	Version   string // of this program
}

// bridge passes calls on to the service.
type bridge struct {
	options Options
	client  *mcp.Client
	server  *mcp.Server

	mu      sync.Mutex
	session *mcp.ClientSession // nil while there is no connection
}

// Run connects to the service and serves the client until it closes its end.
func Run(ctx context.Context, o Options) error {
	b := &bridge{options: o}
	b.client = mcp.NewClient(&mcp.Implementation{Name: "atelier", Version: o.Version}, &mcp.ClientOptions{ProgressNotificationHandler: b.passProgress})
	session, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	known := session.InitializeResult()
	b.server = mcp.NewServer(known.ServerInfo, &mcp.ServerOptions{
		Instructions: known.Instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	b.server.AddReceivingMiddleware(b.passMethods)
	ends := newPending(ctx, o.In, o.Out)
	return b.server.Run(ctx, &mcp.IOTransport{Reader: ends, Writer: ends})
}

// connect returns the connection to the service, and makes one if there is none.
func (b *bridge) connect(ctx context.Context) (*mcp.ClientSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != nil {
		return b.session, nil
	}
	// The connection outlives the call that makes it.
	session, err := b.client.Connect(context.WithoutCancel(ctx), &mcp.StreamableClientTransport{
		Endpoint:             b.options.Endpoint,
		HTTPClient:           &http.Client{Transport: b.options.Transport},
		DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return nil, err
	}
	b.session = session
	return session, nil
}

// drop forgets a connection that has broken, so that the next call makes another.
func (b *bridge) drop(session *mcp.ClientSession) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session == session {
		b.session = nil
	}
}

func (b *bridge) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != nil {
		_ = b.session.Close() // the service keeps nothing
	}
}

// passMethods passes the methods about tools on to the service. The SDK answers
// the others.
func (b *bridge) passMethods(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.ListToolsRequest:
			params := &mcp.ListToolsParams{}
			if r.Params != nil {
				params.Cursor = r.Params.Cursor
			}
			return pass(ctx, b, func(s *mcp.ClientSession) (mcp.Result, error) { return s.ListTools(ctx, params) })
		case *mcp.CallToolRequest:
			params := &mcp.CallToolParams{Meta: ownMeta(r.Params.Meta), Name: r.Params.Name}
			if len(r.Params.Arguments) > 0 {
				params.Arguments = r.Params.Arguments
			}
			return pass(ctx, b, func(s *mcp.ClientSession) (mcp.Result, error) { return s.CallTool(ctx, params) })
		}
		return next(ctx, method, req)
	}
}

func pass(ctx context.Context, b *bridge, call func(*mcp.ClientSession) (mcp.Result, error)) (mcp.Result, error) {
	session, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	result, err := call(session)
	if errors.Is(err, mcp.ErrConnectionClosed) {
		b.drop(session)
	}
	return result, err
}

// ownMeta returns the metadata of a call without what describes the connection to
// the client, which is another one than the connection to the service.
func ownMeta(meta mcp.Meta) mcp.Meta {
	own := mcp.Meta{}
	for name, value := range meta {
		if !strings.HasPrefix(name, "io.modelcontextprotocol/") {
			own[name] = value
		}
	}
	return own
}

// passProgress passes the progress of a run on to the client.
func (b *bridge) passProgress(ctx context.Context, r *mcp.ProgressNotificationClientRequest) {
	for session := range b.server.Sessions() {
		_ = session.NotifyProgress(ctx, r.Params) // a client that has left needs none
	}
}
