// Package catalog stores the tools that people can run.
//
// A tool is described by a manifest, a YAML file that an operator writes or
// that is embedded in the program. Applying manifests stores them in the
// database, where all server nodes can read them. Each node keeps a Snapshot of
// the catalog in memory and replaces it when the catalog's version changes.
//
//	manifests ──Read──▶ Set ──Apply──▶ database ──RefreshSnapshot──▶ Snapshot ──ViewFor──▶ pages
//
// The slug of a tool is the file name of its manifest. A tool keeps its ID as
// long as its slug stays the same, even if it was removed for some time. If a
// manifest has a problem, the stored tool stays unchanged.
package catalog

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/flow"
)

// Tool is a tool that people can run.
type Tool struct {
	ID   string
	Slug string
	Hash string // hash of the definition; changes with every edit

	Name        string
	Description string // "" if there is none
	Avatar      Asset  // "" if there is none
	Tags        []string
	Position    int64
	Price       Price
	NumResults  *NumResults // nil if a run always has one result
	Output      Output
	Engine      Engine
	Timeout     time.Duration
	Priority    int64 // of its runs among waiting runs; 0 is normal, higher comes earlier
	Visibility  Visibility
	OpenAI      OpenAI
	Fields      []Field
	Flow        *flow.Definition // nil if the tool is no flow
	Saved       bool             // whether it is a flow that people saved (see SavedFlow)
	// FlowTools are the hashes of the tools that a flow names, by slug. They are
	// set for flows from the database.
	FlowTools map[string]string

	Created, Updated time.Time
	// AverageDuration is the average duration of one result. It is zero before
	// the first run.
	AverageDuration time.Duration
	// RecentDuration is the median duration of one result in the latest runs. A
	// few slow runs, for example while a model is being loaded, do not affect
	// it.
	RecentDuration time.Duration
}

// PricingType says whether runs of a tool cost tokens.
type PricingType string

// The pricing types, as named in the API.
const (
	Cost PricingType = "COST"
	Free PricingType = "FREE"
)

// Price is the price of one result, in tokens.
type Price struct {
	Type   PricingType
	Tokens int64
}

// NumResults contains the minimum and maximum number of results of a run, and
// the initial value in forms (Default).
type NumResults struct{ Min, Max, Default int64 }

// ResultCount returns the number of results of a run. requested is the number
// in the request; if it is nil, the result is the minimum. ResultCount returns
// an error if the number is not allowed. maxResults is the limit of the
// installation. A tool without NumResults always has one result.
func (t *Tool) ResultCount(requested *int64, maxResults int64) (n int64, err error) {
	if t.NumResults == nil {
		return 1, nil
	}

	low := max(1, t.NumResults.Min)
	high := min(t.NumResults.Max, maxResults)
	n = low
	if requested != nil {
		n = *requested
	}
	if n < low || n > high {
		return 0, fault.New(fault.NumResultsLimit, fmt.Sprintf("This tool makes %d to %d results in one run.", low, high)).
			With("min", low).With("max", high)
	}
	return n, nil
}

// TokenCost returns the number of tokens that n results cost. On overflow it
// returns math.MaxInt64, which no account can pay.
func (t *Tool) TokenCost(n int64) int64 {
	if t.Price.Type == Free || t.Price.Tokens <= 0 || n <= 0 {
		return 0
	}
	if n > math.MaxInt64/t.Price.Tokens {
		return math.MaxInt64
	}
	return n * t.Price.Tokens
}

// Output describes the results of a tool.
type Output struct {
	Type      string
	MimeTypes []string
	Origin    Origin // "" if the engine determines the origin
}

// Origin says how results are generated.
type Origin string

// The origins of results.
const (
	Trained     Origin = "trained"     // by a model that was trained on examples
	Algorithmic Origin = "algorithmic" // by code without a trained model
)

// Engine is the name of the engine that runs a tool, and the settings for it
// (With) as canonical JSON.
type Engine struct {
	Name string
	With string
}

// Asset is the SHA-256 digest of a picture of the catalog in hexadecimal, or ""
// if there is no picture.
type Asset string

// Visibility restricts who may see and use a tool. If all lists are empty,
// everyone may. The lists contain no empty names.
type Visibility struct {
	Companies, Teams, Roles []string
}

// Audience describes the viewer of the catalog. CompanyID, TeamID and Role are
// empty for a personal account.
type Audience struct {
	CompanyID, TeamID, Role string
	// Allowed contains the tools that the role may use; if it is empty, the
	// role may use all tools. Blocked contains tools that the role may not use.
	Allowed, Blocked IDSet
}

// IDSet is a comparable set of tool IDs.
type IDSet string

// NewIDSet returns a set of tool IDs. The IDs must be sorted, so that equal
// sets compare as equal.
func NewIDSet(ids []string) IDSet { return IDSet(strings.Join(ids, ",")) }

// hasID reports whether the set contains an ID. A search for the substring
// suffices, because all IDs have the same length and contain no comma.
func (s IDSet) hasID(id string) bool { return strings.Contains(string(s), id) }

// CanSee reports whether the audience may see and use the tool, according to
// the manifest and the role. No other function decides this.
func (a Audience) CanSee(t *Tool) bool {
	return t.Visibility.IncludesAudience(a) && (a.Allowed == "" || a.Allowed.hasID(t.ID)) && !a.Blocked.hasID(t.ID)
}

// IncludesAudience reports whether the manifest of a tool allows the audience
// to see it.
func (v Visibility) IncludesAudience(a Audience) bool {
	if !v.isRestricted() {
		return true
	}
	return slices.Contains(v.Companies, a.CompanyID) || slices.Contains(v.Teams, a.TeamID) || slices.Contains(v.Roles, a.Role)
}

// isRestricted reports whether the tool is not visible to everyone.
func (v Visibility) isRestricted() bool { return len(v.Companies)+len(v.Teams)+len(v.Roles) > 0 }

// Tag classifies tools. It is defined in tags.yaml.
type Tag struct {
	ID       string
	Slug     string
	Type     string
	Label    string
	Internal bool // never shown to clients
}

// Kit is a curated list of tools. It is defined in kits.yaml.
type Kit struct {
	ID          string
	Slug        string
	Label       string
	Description string
	Tags        []string
	Default     string // slug of the default tool
	Entries     []KitEntry
}

// KitEntry is a tool in a kit.
type KitEntry struct {
	Tool   string // slug of the tool
	Tags   []string
	Labels []KitLabel
}

// KitLabel is a badge that is shown on a tool of a kit.
type KitLabel struct{ ID, Icon, Label string }

// SortKey is the position of a tool in lists, which are sorted by Position,
// then Name, then ID.
type SortKey struct {
	Position int64
	Name, ID string
}

// SortKey returns the position of the tool in lists.
func (t *Tool) SortKey() SortKey { return SortKey{t.Position, t.Name, t.ID} }

// Compare returns a negative number if k sorts before o, a positive number if
// it sorts after o, and 0 if they are equal.
func (k SortKey) Compare(o SortKey) int {
	return cmp.Or(cmp.Compare(k.Position, o.Position), cmp.Compare(k.Name, o.Name), cmp.Compare(k.ID, o.ID))
}
