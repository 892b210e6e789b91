// Package run stores the runs of tools. Each row is a state machine, and every
// transition is one conditional update.
//
//	          claim                 end
//	queued ──────────▶ running ──────────▶ succeeded, failed, cancelled
//	  │  ▲                │
//	  │  └── lost, returned
//	  └──cancel, fail──▶ cancelled, failed
//
// Only one worker at a time can claim a run. The worker keeps the run as long
// as it renews its lease. Every claim increments the attempt number of the run.
// A worker's write succeeds only if the attempt number is still the number of
// its own claim. If a worker continues after another worker has taken over the
// run, it therefore changes nothing.
//
// Scheduling is fair: among the people with queued runs for an engine, the
// person whose last claim is the oldest comes next. The table run_turn has, for
// each engine and person, the time when the person was last served and the
// number of their queued runs. People who were not served lately come first, in
// the order in which they arrived.
//
// A run can have a head start, by its priority: it moves the turn of the person
// forward by this time, and the run forward among the runs of the person. The
// times of all others do not change, so after this time they come first, and
// nobody starves.
//
// An engine can have a limit on the runs that all workers together execute at
// the same time. A claim of such an engine locks the row of the engine, counts
// the running runs and then claims; so two claims never count the same free
// place, and no counter can differ from the runs.
//
// Every transaction locks rows in the order of the columns below, to prevent
// deadlocks. A claim locks the run_turn row before the run, but skips locked
// rows, so it never waits for one lock while it has another; only the row of an
// engine with a limit, which it locks first, is waited for. A dot means that
// the row is locked because of a foreign key.
//
//	               person  run  run_poll  rate key  run_turn  report, budget  account  system account
//	create           x     new               x         x                        x
//	steps of a flow  x     new               ·         x
//	poll             ·      ·      x         x
//	cancel           x      x      x                   x            x           x         x
//	fail queued      x      x      x                   x            x           x         x
//	end                     x      x                                x           x         x
//	return                  x                          x
//	requeue lost          many                     many, sorted
//	renew                 many
//	claim                  2nd                        1st
//
// The row of a flow in flow_run is locked after the run that ends, and before
// all other rows; deciding about the next steps of a flow locks the person, then
// this row. The runs of the steps are not locked with it: they are cancelled in
// transactions of their own.
//
// The storage row of the account is locked right before the account, and the
// storage row of the installation last of all.
package run

import (
	"time"

	"atelier/internal/base/fault"
)

// State is the state of a run. The API shows it as a status and, while the
// status is pending, a stage.
type State string

// The states of a run. The last three are final.
const (
	Queued    State = "queued"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// next lists the possible transitions between states.
var next = map[State][]State{
	Queued:  {Running, Cancelled, Failed},
	Running: {Succeeded, Failed, Cancelled, Queued}, // queued again if its worker died or stopped
}

// Pending is the status of runs that have not ended.
const Pending = "pending"

// IsEnded reports whether the state is final.
func (s State) IsEnded() bool { return len(next[s]) == 0 }

// PublicStatus returns the status that the API shows for the state.
func (s State) PublicStatus() string {
	if s.IsEnded() {
		return string(s)
	}
	return Pending
}

// Run is a request to generate results with a tool, and its state.
type Run struct {
	ID        string // UUID, shown as request_id
	LibraryID string // first part of the public ids of the run's results
	ParentID  string // run of the flow that started this run as a step, or ""
	RetryOf   string // run of the same flow whose finished steps a new flow takes over, or ""; not read from the database

	PersonID     string // person who started the run
	AccountID    string // account that pays: the id of the person or the team
	TeamID       string // empty if the personal account pays
	CompanyID    string // company of the team; empty if there is no team
	Credential   string // kind of the credential that created the run
	CredentialID string // id of an access token or of a device
	Plugin       string // plugin named in the create request, or ""

	ToolID     string
	ToolHash   string        // version of the tool that the run was validated against
	Engine     string        // name of the engine in the tool's manifest
	Inputs     string        // JSON object with values and references to files
	Prompt     string        // value of the tool's prompt field, else that of the flow it is a step of, or ""
	Seed       int64         // chosen by the client, or random
	NumResults int64         // number of requested results
	Metadata   string        // JSON object of the client, or ""
	WebhookURL string        // URL that receives an event when the run ends, or ""
	Estimated  time.Duration // estimated duration in whole seconds; 0 if no run of the tool has been timed
	PollAfter  time.Duration // how long a client should wait between polls, in whole seconds

	UnitTokens     int64  // price of one result in tokens
	TokensHeld     int64  // tokens held in the ledger until the run ends
	AllowanceHeld  int64  // free allowance held until the run ends
	AllowanceMonth string // month of the held allowance, as in 2026-11; empty if none is held
	TokensCharged  int64  // 0 until the run has ended; of a flow always 0, because its steps are charged
	AllowanceUsed  int64  // 0 until the run has ended

	// Totals are those of a flow. Only End sets them.
	Totals FlowTotals

	// HeadStart is how much earlier than its creation the run counts as created
	// when the next run is chosen. It is negative for runs with a low priority.
	HeadStart time.Duration

	State       State
	Attempt     int64  // number of the latest claim; 0 if never claimed
	Cancel      bool   // cancellation was requested
	Progress    *int64 // in thousandths; nil if unknown
	Preview     string // blob key of the newest preview picture, or ""
	Revision    int64  // incremented with every visible change
	ErrorCode   string // set if the run failed
	ErrorText   string // message for people; set if the run failed
	EngineState string // checkpoint with which the next attempt of the engine can resume work on a model server

	// ServerPosition is the position of a running run in the queue of its model
	// server, 0 if the position is unknown. It is nil if the run is not in that
	// queue.
	ServerPosition *int64

	Created  time.Time
	Started  time.Time // time of the first claim plus the time spent in the queue of the model server; zero if never claimed
	Finished time.Time // zero if the run has not ended
}

// FollowedBy returns the ids under which followers on a node are told about
// changes of the run: its own, that of its account and that of its flow.
func (r Run) FollowedBy() []string {
	all := []string{r.ID, r.AccountID}
	if r.ParentID != "" {
		all = append(all, r.ParentID)
	}
	return all
}

// IsWaitingAtServer reports whether a worker has claimed the run, but the run
// waits in the queue of its model server. Progress is checked because older
// releases, which do not support this queue, can leave an old position in the
// row. They store progress as soon as the work continues.
func (r Run) IsWaitingAtServer() bool {
	return r.State == Running && r.ServerPosition != nil && r.Progress == nil
}

// Stage returns the state as the API shows it: a run that waits in the queue of
// its model server is queued.
func (r Run) Stage() State {
	if r.IsWaitingAtServer() {
		return Queued
	}
	return r.State
}

// ProgressFraction returns the progress from 0 to 1, or nil if it is unknown.
func (r Run) ProgressFraction() *float64 {
	if r.Progress == nil {
		return nil
	}
	fraction := float64(*r.Progress) / 1000
	return &fraction
}

// Input is an input file of a run.
type Input struct {
	Field   string // key of the tool's field
	Index   int    // index in the list of the field; 0 for a single file
	AssetID string
}

// Result is a result of a run to be stored. Its file is described by the asset.
type Result struct {
	ID         string // UUID
	AssetID    string
	Type       string // media type, such as IMG
	Shape      string // such as landscape; for filters of the library
	Resolution string // size class; for filters of the library
	SearchText string // the prompt in the form in which searches in the library find it
	Note       string // remark of the tool for people, or ""
}

// Output is a stored result of a run with the data of its file.
type Output struct {
	ID       string
	Library  string // library id of the run that made it
	Type     string // media type, such as IMG
	MimeType string
	Width    int64 // 0 if the medium has no width
	Height   int64 // 0 if the medium has no height
	Duration time.Duration
	Size     int64 // in bytes
	SHA256   string
	Blurhash string
	ToolSlug string // "result" if the tool is no longer known
	Blob     string // blob key of the file
	Thumb    string // blob key of the thumbnail, or ""
	Preview  string // blob key of a video's first frame, or ""
	Expired  bool   // the file was removed, or the result was deleted
	Note     string // remark of the tool for people, or ""
}

// Outcome is the final state of a run and the price that was charged for it.
type Outcome struct {
	State         State
	TokensCharged int64
	AllowanceUsed int64
	ErrorCode     string // set for failed runs
	ErrorText     string // message for people; set for failed runs
	Results       []Result
	Delivered     []FlowStep // steps whose results are those of a succeeded flow, in their order
}

// Lease is the claim of a worker on one attempt of a run.
type Lease struct {
	ID      string // id of the run
	Attempt int64
	Cancel  bool // cancellation was requested
}

// ErrNotFound is returned for runs of other accounts and for runs that do not
// exist.
var ErrNotFound = fault.New(fault.NotFound, "There is no such run.")

// Filter restricts a list of runs. Empty fields match all runs.
type Filter struct {
	Status string
	ToolID string
}

// HasIndexOrder reports whether an index has the runs of an account that the
// filter selects in the order of List (see sqldb.WithIndexOrder).
func (f Filter) HasIndexOrder() bool { return f.Status == "" || f.ToolID == "" }

// Cursor is the position of a run in lists sorted by creation time and id.
type Cursor struct {
	Created time.Time
	ID      string
}
