// Package engine defines the interface of engines, which run tools: adapters
// for model servers, and code in this program.
//
// An engine gets a Job and a Sink. It reports progress, sends previews, passes
// each result to the sink as soon as it is complete, and returns when it is
// done. The caller stores the results, decides about retries, and cancels the
// context when the run is cancelled, takes too long, or is claimed by another
// worker. All state that an engine keeps between jobs can be lost without
// harm.
package engine

import (
	"context"
	"errors"
	"io"
)

// Engine runs jobs. It is safe for concurrent use.
type Engine interface {
	// Run does the job and passes every result to the sink, in order. It
	// returns nil when the sink has accepted all results. Otherwise it returns
	// an error: an *Error for a failure that the engine recognizes; any other
	// error counts as Failed. In every state of the job, Run returns soon
	// after ctx is cancelled and leaves nothing running.
	Run(ctx context.Context, j Job, out Sink) error
}

// Prober is an engine that depends on a server or program, which may be
// unavailable.
type Prober interface {
	Engine
	// Probe checks whether the server would accept work now. It returns within
	// a short time: nil if the server would accept work, otherwise an error
	// with the reason.
	Probe(ctx context.Context) error
}

// Abandoner is an engine whose work continues on a server after the worker has
// stopped, and that saves checkpoints with the ids of this work.
type Abandoner interface {
	Engine
	// Abandon cancels, as far as possible, the work whose ids are in a
	// checkpoint. It is called when the run has ended and its results are not
	// needed. It returns no error if the work has already ended or is unknown
	// to the server.
	Abandon(ctx context.Context, note string) error
}

// Slots is an engine and the number of jobs that may run on it at the same
// time.
type Slots struct {
	Engine   Engine
	Parallel int    // maximum number of jobs of this process
	Limit    int    // maximum number of jobs of all processes of the installation together; 0 if there is none
	Pool     string // pool that the engine belongs to; workers can be bound to pools
	Trained  bool   // the results come from machine learning models
}

// Job is the work of one run, as passed to an engine.
type Job struct {
	// RunID, Attempt (the number of the worker's claim of the run) and Try
	// (the number of the retry within the claim) together are unique for every
	// call of Run. Engines can use them as a name for their work.
	RunID   string
	Attempt int64
	Try     int
	// With is the engine.with section of the tool's manifest, as canonical
	// JSON.
	With string
	// Values are the inputs by field key, validated and with defaults filled
	// in: string, bool, int64, float64, []any or map[string]any. Omitted
	// fields are absent. Input files are in Files.
	Values map[string]any
	// Files are the input files by field key, in the order in which the client
	// sent them.
	Files map[string][]File
	// Seed determines everything random in the job. If the engine is
	// deterministic, equal jobs with equal seeds have equal results.
	Seed uint32
	// NumResults is the number of requested results, at least 1.
	NumResults int
	// OutputType and MimeTypes are the output type and the media types in the
	// tool's manifest.
	OutputType string
	MimeTypes  []string
	// Memory waits until the job may use the given number of bytes of memory
	// and returns a function that releases them. If Memory is nil, memory is
	// not limited. Engines call ReserveMemory instead.
	Memory func(ctx context.Context, bytes int64) (release func(), err error)
	// SavedCheckpoint is the last checkpoint that an earlier attempt of this
	// run saved with Sink.SaveCheckpoint. It is empty if there is none.
	SavedCheckpoint string
}

// ReserveMemory waits until the job may use the given number of bytes of
// memory. Call it before the allocation, and never while the job has another
// reservation: two such jobs could wait for each other forever. The caller
// must call release. If the machine can never provide that much memory, the
// error is an *Error with a message for the person who started the run.
func (j Job) ReserveMemory(ctx context.Context, bytes int64) (release func(), err error) {
	if j.Memory == nil {
		return func() {}, nil
	}
	return j.Memory(ctx, bytes)
}

// File is an input file of a job.
type File struct {
	MimeType      string
	Size          int64
	Width, Height int // pixels; 0 if the file has no dimensions
	// Address returns a URL that serves the file for a limited time, for model
	// servers that can reach this service. Address is nil if the file has no
	// such URL.
	Address func() string
	// Open returns a reader of the whole file. The caller closes the reader.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// ErrHandedOver is the cause of a context's cancellation when another worker
// continues the run, because this worker is shutting down or has lost its
// lease. Work whose id is in a checkpoint may then continue on its server. If
// a context is cancelled for any other reason, the engine must cancel that
// work.
var ErrHandedOver = errors.New("another worker is taking over the run")

// IsHandedOver reports whether ctx was cancelled because another worker
// continues the run.
func IsHandedOver(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrHandedOver) }

// IsFinal reports whether err ends the run, so that neither another attempt
// nor another worker will continue its work.
func IsFinal(ctx context.Context, err error) bool {
	return !IsHandedOver(ctx) && (ctx.Err() != nil || !AsError(err).Transient)
}

// Sink receives the results and progress of an engine. Its methods may be called from several
// goroutines.
type Sink interface {
	// Progress reports the completed fraction of the job, from 0 to 1.
	Progress(fraction float64)
	// Queued reports that the job waits in the queue of its server, at the
	// given position; the job that is served next has position 1, and 0 means
	// that the position is unknown. Until the next call of Progress the run
	// counts as queued: the time does not count against the tool's timeout.
	Queued(position int)
	// Preview shows people an intermediate result, as a small JPEG or PNG. The
	// sink may drop previews.
	Preview(picture []byte)
	// Output stores one result. The sink detects the type from the bytes. If Output returns an error,
	// the result was not stored, and Run must return the same error.
	Output(ctx context.Context, r Result) error
	// SaveCheckpoint saves a checkpoint that another worker needs if this one
	// fails, such as the id of work on a server. The checkpoint is stored when
	// SaveCheckpoint returns, and replaces the previous one. An empty
	// checkpoint deletes the previous one. A checkpoint has at most
	// MaxCheckpoint bytes.
	SaveCheckpoint(ctx context.Context, note string) error
}

// MaxCheckpoint is the maximum size of a checkpoint, in bytes.
const MaxCheckpoint = 4 << 10

// Result is one result of a job, with its content and a note.
type Result struct {
	Data io.Reader
	// Note is a remark for the people who see the result, for example the part
	// of the prompt that the result does not show. It is empty if there is
	// none. The sink makes the note one line of plain text and cuts it at
	// MaxNote bytes. The note may repeat the prompt, so it is stored and
	// erased with the result and never logged.
	Note string
}

// MaxNote is the maximum size of a result's note, in bytes.
const MaxNote = 500

// Code is the kind of failure that ended a job. Codes are public API.
type Code string

// Failure codes of engines.
const (
	Failed      Code = "ENGINE_FAILED"      // the engine attempted the job and failed
	Unavailable Code = "ENGINE_UNAVAILABLE" // the engine is unreachable, busy or broken
	Refused     Code = "CONTENT_POLICY_VIOLATION"
	Invalid     Code = "OUTPUT_INVALID" // the engine's output is not a valid result
)

// Error is a failure that the engine recognizes. Its message can be shown to
// people.
type Error struct {
	Code Code
	// Message is for the person who started the run. It contains no server
	// name, file path or credential.
	Message string
	// Transient means that the same job may succeed if it is attempted again.
	Transient bool

	cause error
}

// Fail returns a permanent failure: the same job would fail again.
func Fail(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// FailTransient returns a transient failure: another attempt may succeed.
func FailTransient(code Code, message string) *Error {
	return &Error{Code: code, Message: message, Transient: true}
}

// WithCause returns a copy of the failure with a cause, which appears only in
// logs.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.cause = err
	return &c
}

// Error returns the message for logs, which includes the cause.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap returns the cause of the failure, or nil if it has none.
func (e *Error) Unwrap() error { return e.cause }

// AsError returns the *Error that err wraps. If there is none, it returns a
// permanent failure with a general message.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return Fail(Failed, "The tool could not finish.").WithCause(err)
}
