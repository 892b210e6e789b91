// Package engine is what runs a tool: a model server somewhere else, or code
// of our own.
//
// An engine gets a Job and a Sink. It tells how far it is, shows previews,
// hands over each result as soon as it has it, and returns when it is done.
// Whoever called it stores what it hands over, decides about retries and ends
// its context when the run is cancelled, takes too long, or is somebody
// else's by now. An engine keeps nothing between jobs that it could not lose.
package engine

import (
	"context"
	"errors"
	"io"
)

// Engine runs jobs. It is safe for concurrent use.
type Engine interface {
	// Run does the job and hands every result to the sink, in order. It
	// returns nil when all were taken. Where it ends otherwise, the error says
	// why: an *Error for what the engine knows, anything else counts as Failed.
	// It returns soon after ctx has ended, whatever it waits for, and leaves
	// nothing running.
	Run(ctx context.Context, j Job, out Sink) error
}

// Prober is an engine that works with a server, which may be away.
type Prober interface {
	Engine
	// Probe asks whether the server would take work now, and answers soon: nil,
	// or why not.
	Probe(ctx context.Context) error
}

// Abandoner is an engine that leaves notes of work which goes on elsewhere.
type Abandoner interface {
	Engine
	// Abandon ends what a note names, as far as it can be: the run is over, and
	// nobody will ask for the results. What is over or unknown is no error.
	Abandon(ctx context.Context, note string) error
}

// Pool is an engine and how many jobs this process gives it at once.
type Pool struct {
	Engine   Engine
	Parallel int
	Trained  bool // its results come from models that learned from examples
}

// Job is what an engine is asked for.
type Job struct {
	// RunID names the run, Attempt the worker's turn at it and Try which of its
	// tries this is: together they are different for every call of Run, for
	// engines that need a name to find their work by.
	RunID   string
	Attempt int64
	Try     int
	// With is the engine's part of the tool's manifest, as canonical JSON.
	With string
	// Values are the inputs by field key, checked and with defaults filled in:
	// string, bool, int64, float64, []any or map[string]any. Fields that were
	// left out are absent; media are in Files.
	Values map[string]any
	// Files are the media inputs by field key, in the caller's order.
	Files map[string][]File
	// Seed is what everything random in the job follows from. Equal jobs with
	// equal seeds give equal results where the engine can promise that.
	Seed uint32
	// NumResults is how many results are wanted, at least 1.
	NumResults int
	// OutputType and MimeTypes are what the tool's manifest says it makes.
	OutputType string
	MimeTypes  []string
	// Memory waits until the job may take so many bytes of memory, and gives what
	// gives them back; nil: nobody counts. Engines use Reserve.
	Memory func(ctx context.Context, bytes int64) (release func(), err error)
	// Left is the last note that an earlier try of this run left with
	// Sink.Leave, "" for none.
	Left string
}

// Reserve waits until the job may take so many bytes of memory. It is asked for
// before anything is allocated, and once at a time: who asks for more while they
// hold some may wait for ever. The caller releases it. Where there is never as
// much, the error is a failure that the person can be told.
func (j Job) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	if j.Memory == nil {
		return func() {}, nil
	}
	return j.Memory(ctx, bytes)
}

// File is a media input.
type File struct {
	MimeType      string
	Size          int64
	Width, Height int // 0 where it has none
	// Address makes a URL that answers with the file for a while, for servers
	// that can reach us; nil where there is none.
	Address func() string
	// Open reads the file from its start. The reader has to be closed.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// ErrElsewhere is the cause of a context's end where another worker goes on with
// the run: this one has to stop, or has lost it. What an engine left a note of
// may go on then. In all other cases it has to end.
var ErrElsewhere = errors.New("another worker goes on with the run")

// Elsewhere tells whether a context ended because another worker goes on.
func Elsewhere(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrElsewhere) }

// Sink takes what an engine makes. Its methods may be called from several
// goroutines.
type Sink interface {
	// Progress tells how much is done, from 0 to 1.
	Progress(fraction float64)
	// Preview shows what the result may become: a small JPEG or PNG. It may be
	// dropped.
	Preview(picture []byte)
	// Output stores one result. The type is what the bytes are, whatever the
	// engine thinks. An error means that the result was not taken, and is to be
	// returned from Run: it is the sink's reason, not the engine's.
	Output(ctx context.Context, r Result) error
	// Leave notes what another worker has to know if this one dies now, such as
	// the name of work that goes on elsewhere. It is stored when Leave returns,
	// and replaces the note before; "" is none. At most MaxNote bytes.
	Leave(ctx context.Context, note string) error
}

// MaxNote bounds what an engine can leave.
const MaxNote = 4 << 10

// Result is something that an engine made.
type Result struct {
	Data io.Reader
	// Note is for the people who see the result, such as which part of the prompt
	// it does not show; "" for none. One line of plain text: the sink makes it
	// one, and cuts it after MaxRemark bytes. It may repeat what was asked for,
	// so it is kept and forgotten with the result and never logged.
	Note string
}

// MaxRemark bounds a result's note.
const MaxRemark = 500

// Code says what kind of failure ended a job. Codes are public API.
type Code string

// The failures of engines.
const (
	Failed      Code = "ENGINE_FAILED"      // it tried and could not
	Unavailable Code = "ENGINE_UNAVAILABLE" // it could not be reached, or is busy or ill
	Refused     Code = "CONTENT_POLICY_VIOLATION"
	Invalid     Code = "OUTPUT_INVALID" // what it made is no result
)

// Error is a failure that the engine knows about.
type Error struct {
	Code Code
	// Message is for the person who started the run. It names no server, path
	// or secret.
	Message string
	// Transient failures are worth another try with the same job.
	Transient bool

	cause error
}

// Fail makes a failure that another try will not mend.
func Fail(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Again makes a failure that may be over at the next try.
func Again(code Code, message string) *Error {
	return &Error{Code: code, Message: message, Transient: true}
}

// Because keeps the cause for the log.
func (e *Error) Because(err error) *Error {
	c := *e
	c.cause = err
	return &c
}

// Error is the text for logs.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.cause }

// As gives the failure that an engine's error is, a general one where the
// engine did not say more.
func As(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return Fail(Failed, "The tool could not finish.").Because(err)
}
