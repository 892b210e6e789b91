package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"regexp"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"atelier/internal/base/ids"
)

// Settings are the settings of the mail server.
type Settings struct {
	Address string // host:port
	// From is the sender address, with or without a name.
	From string
	// Username and Password authenticate at the server; empty: none.
	Username, Password string
	// TLS is starttls (required), tls (from the first byte), or none.
	TLS string
	// Timeout is the timeout of the connection: 30 s.
	Timeout time.Duration
	// Roots are trusted instead of the roots of the system.
	Roots *x509.CertPool
}

// SMTP returns a sender that delivers messages to a mail server, one connection
// each.
func SMTP(s Settings) (Sender, error) {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil || host == "" || port == "" {
		return nil, errors.New("mail settings: the address is not host:port")
	}
	from, err := mail.ParseAddress(s.From)
	if err != nil || !isBareAddress(from.Address) || !isPrintable(from.Name, "") {
		return nil, errors.New("mail settings: the sender is not an address")
	}
	options := []gomail.Option{
		gomail.WithTimeout(cmp.Or(s.Timeout, 30*time.Second)),
		gomail.WithoutNoop(),
	}
	secure := &tls.Config{ServerName: host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
	server := &server{host: host, from: from}
	server.domain = from.Address[strings.LastIndexByte(from.Address, '@')+1:]
	dialer := &net.Dialer{}
	server.dial = func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", s.Address) }
	switch s.TLS {
	case "starttls":
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithTLSConfig(secure))
	case "tls":
		options = append(options, gomail.WithSSL())
		wrap := &tls.Dialer{NetDialer: dialer, Config: secure}
		server.dial = func(ctx context.Context) (net.Conn, error) { return wrap.DialContext(ctx, "tcp", s.Address) }
	case "none":
		if s.Username != "" && !isLocalHost(host) {
			return nil, errors.New("mail settings: a password is not sent to another machine without TLS")
		}
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, errors.New("mail settings: want starttls, tls or none")
	}
	if s.Username != "" {
		options = append(options, gomail.WithUsername(s.Username), gomail.WithPassword(s.Password),
			// Microsoft's servers support LOGIN only. Both refuse to send a password
			// without TLS, except to this machine.
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	server.options = options
	return server, nil
}

// isLocalHost reports whether the host is this machine by its name, without DNS.
func isLocalHost(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

type server struct {
	host, domain string
	from         *mail.Address
	dial         func(context.Context) (net.Conn, error)
	options      []gomail.Option
}

// Send delivers the message to the mail server.
func (s *server) Send(ctx context.Context, m Message) error {
	if err := m.CheckMessage(); err != nil {
		return err
	}
	// The library ignores the context after it has dialled, and leaves the connection
	// open when the server refuses it: both are corrected here.
	ctx, end := context.WithCancel(ctx)
	defer end()
	dial := func(dialling context.Context, _, _ string) (net.Conn, error) {
		conn, err := s.dial(dialling)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
	client, err := gomail.NewClient(s.host, append([]gomail.Option{gomail.WithDialContextFunc(dial)}, s.options...)...)
	if err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	msg := s.composeMessage(m)
	err = client.DialAndSendWithContext(ctx, msg)
	switch {
	case msg.IsDelivered():
		// A failure after the server has accepted the message is no reason to send it
		// twice.
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("send mail: %w", context.Cause(ctx))
	default:
		return classifyError(err)
	}
}

// composeMessage returns the message in the form of the library.
func (s *server) composeMessage(m Message) *gomail.Msg {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(&mail.Address{Address: m.To})
	msg.Subject(m.Subject)
	msg.SetMessageIDWithValue(ids.New() + "@" + s.domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: suppresses automatic replies
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	return msg
}

// links match links that a server's refusal may quote from a message. Such links work once for any
// holder, so they are removed from errors.
var links = regexp.MustCompile(`(?i)[a-z]+://\S+`)

// classifyError marks refusals of this message and its recipient as permanent.
// Problems with the account of this service at the server can be corrected by
// the operator.
func classifyError(err error) error {
	said := links.ReplaceAllString(err.Error(), "[link]")
	refused, ok := errors.AsType[*gomail.SendError](err)
	if ok && refused.ErrorCode() >= 500 && refused.Reason != gomail.ErrSMTPMailFrom {
		return permanent{fmt.Errorf("send mail: refused: %s", said)}
	}
	return fmt.Errorf("send mail: %s", said)
}
