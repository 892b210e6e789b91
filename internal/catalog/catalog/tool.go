// Package catalog stores the tools that people can run.
//
// A tool is described by a manifest, a YAML file that an operator writes or
// that ships in the binary. Applying manifests stores them in the database,
// where all nodes see them. Each node serves from a Snapshot in memory and
// replaces it when the catalog's version changes.
//
//	manifests ──Read──▶ Set ──Apply──▶ database ──RefreshSnapshot──▶ Snapshot ──ViewFor──▶ pages
//
// The slug of a tool is the file name of its manifest. A tool keeps its ID as
// long as its slug stays the same, even if it was removed for some time. A
// manifest with a problem changes nothing: the stored tool stays unchanged.
package catalog

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/fault"
)

// Tool is one entry of the catalog.
type Tool struct {
	ID   string
	Slug string
	Hash string // of the definition; changes with every edit

	Name        string
	Description string // "" for none
	Avatar      Asset  // "" for none
	Tags        []string
	Position    int64
	Price       Price
	NumResults  *NumResults // nil: always one result
	Output      Output
	Engine      Engine
	Timeout     time.Duration
	Visibility  Visibility
	Fields      []Field

	Created, Updated time.Time
	// AverageDuration is the average duration of one result, zero before the
	// first run.
	AverageDuration time.Duration
	// RecentDuration is the median duration of one result in the newest runs. A
	// few slow runs, for example while a model is loaded, do not change it.
	RecentDuration time.Duration
}

// PricingType is whether runs cost tokens.
type PricingType string

// The pricing types of the API.
const (
	Cost PricingType = "COST"
	Free PricingType = "FREE"
)

// Price is the price of one result.
type Price struct {
	Type   PricingType
	Tokens int64
}

// NumResults limits the number of results of a run.
type NumResults struct{ Min, Max, Default int64 }

// ResultCount returns the number of results of a run for a requested number, which
// may be nil. maxResults is the general limit of the installation. A tool
// without NumResults always makes one.
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
		return 0, fault.New(fault.NumResultsLimit, fmt.Sprintf("This tool makes from %d to %d results in one run.", low, high)).
			With("min", low).With("max", high)
	}
	return n, nil
}

// TokenCost returns the tokens for n results. On overflow it returns math.MaxInt64,
// which no account can pay.
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
	Origin    Origin // "": the engine decides
}

// Origin is the way in which results are made.
type Origin string

// The origins of results.
const (
	Trained     Origin = "trained"     // by a model that was trained on examples
	Algorithmic Origin = "algorithmic" // by code without a trained model
)

// Engine names the engine that runs a tool. With are settings for the engine,
// as canonical JSON.
type Engine struct {
	Name string
	With string
}

// Asset is the SHA-256 in hex of a picture of the catalog; "" for none.
type Asset string

// Visibility restricts who may see and use a tool. Empty lists mean everyone;
// the lists contain no empty names.
type Visibility struct {
	Companies, Teams, Roles []string
}

// Audience is the account for which the catalog is shown. A field is empty if
// the account has no company, team or role.
type Audience struct {
	CompanyID, TeamID, Role string
	// Allowed are the only tools that the role may use, "" for all. Blocked are
	// tools that the role may not use.
	Allowed, Blocked IDSet
}

// IDSet is a comparable set of tool IDs.
type IDSet string

// NewIDSet returns the set of sorted IDs.
func NewIDSet(ids []string) IDSet { return IDSet(strings.Join(ids, ",")) }

// hasID reports whether the set contains an ID. All IDs have the same length
// and no comma.
func (s IDSet) hasID(id string) bool { return strings.Contains(string(s), id) }

// CanSee reports whether the audience may see and use the tool. No other function
// decides this.
func (a Audience) CanSee(t *Tool) bool {
	return t.Visibility.IncludesAudience(a) && (a.Allowed == "" || a.Allowed.hasID(t.ID)) && !a.Blocked.hasID(t.ID)
}

// IncludesAudience reports whether the manifest shows the tool to the audience.
func (v Visibility) IncludesAudience(a Audience) bool {
	if !v.isRestricted() {
		return true
	}
	return slices.Contains(v.Companies, a.CompanyID) || slices.Contains(v.Teams, a.TeamID) || slices.Contains(v.Roles, a.Role)
}

// isRestricted reports whether the tool is not visible to everyone.
func (v Visibility) isRestricted() bool { return len(v.Companies)+len(v.Teams)+len(v.Roles) > 0 }

// Tag classifies tools.
type Tag struct {
	ID       string
	Slug     string
	Type     string
	Label    string
	Internal bool // never shown to clients
}

// Kit is a curated list of tools.
type Kit struct {
	ID          string
	Slug        string
	Label       string
	Description string
	Tags        []string
	Default     string // slug of a tool
	Entries     []KitEntry
}

// KitEntry is a tool in a kit.
type KitEntry struct {
	Tool   string // slug
	Tags   []string
	Labels []KitLabel
}

// KitLabel is a badge on an entry.
type KitLabel struct{ ID, Icon, Label string }

// SortKey is the sort key of a tool in lists: position, then name, then ID.
type SortKey struct {
	Position int64
	Name, ID string
}

// SortKey returns the tool's sort key.
func (t *Tool) SortKey() SortKey { return SortKey{t.Position, t.Name, t.ID} }

// Compare compares two sort keys.
func (k SortKey) Compare(o SortKey) int {
	return cmp.Or(cmp.Compare(k.Position, o.Position), cmp.Compare(k.Name, o.Name), cmp.Compare(k.ID, o.ID))
}
