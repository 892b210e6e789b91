// Package catalog knows the tools that people can run.
//
// A tool is described by a manifest, a YAML file an operator writes or one
// that ships in the binary. Applying manifests stores them in the database,
// where all nodes see them; each node serves from a Snapshot in memory that it
// replaces whole when the catalog's version has moved.
//
//	manifests ──Read──▶ Set ──Apply──▶ database ──Refresh──▶ Snapshot ──View──▶ pages
//
// A tool keeps its id as long as its slug, the manifest's file name, lives,
// also when it was away for a while. A manifest with a problem changes
// nothing: its tool goes on as it last was.
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
	Hash string // changes with every edit

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
	// Average is how long one result takes, zero before the first run.
	Average time.Duration
	// Recent is how long one takes in the middle one of the newest runs: a few
	// slow ones among them, as when a model is loaded, do not move it.
	Recent time.Duration
}

// PricingType tells whether a run costs anything.
type PricingType string

// The pricing types of the interface.
const (
	Cost PricingType = "COST"
	Free PricingType = "FREE"
)

// Price is what one result costs.
type Price struct {
	Type   PricingType
	Tokens int64
}

// NumResults bounds how many results a run may ask for.
type NumResults struct{ Min, Max, Default int64 }

// Results gives how many results a run makes that asks for so many, nil where
// it does not say. most bounds every tool. Whoever asks a tool that always
// makes one gets one.
func (t *Tool) Results(asked *int64, most int64) (n int64, err error) {
	if t.NumResults == nil {
		return 1, nil
	}
	low := max(1, t.NumResults.Min)
	high := min(t.NumResults.Max, most)
	n = low
	if asked != nil {
		n = *asked
	}
	if n < low || n > high {
		return 0, fault.New(fault.NumResultsLimit, fmt.Sprintf("This tool makes from %d to %d results in one run.", low, high)).
			With("min", low).With("max", high)
	}
	return n, nil
}

// Cost gives the tokens that n results cost. What no number can hold is the
// largest there is, which nobody can pay.
func (t *Tool) Cost(n int64) int64 {
	if t.Price.Type == Free || t.Price.Tokens <= 0 || n <= 0 {
		return 0
	}
	if n > math.MaxInt64/t.Price.Tokens {
		return math.MaxInt64
	}
	return n * t.Price.Tokens
}

// Output is what a tool makes.
type Output struct {
	Type      string
	MimeTypes []string
	Origin    Origin // "" leaves it to the engine
}

// Origin is what made a result.
type Origin string

// The origins.
const (
	Trained     Origin = "trained"     // a model that learned from examples
	Algorithmic Origin = "algorithmic" // code that did not
)

// Engine names what runs a tool. With is the engine's own business, as
// canonical JSON.
type Engine struct {
	Name string
	With string
}

// Asset names a picture that belongs to the catalog by the SHA-256 of its
// bytes in hex; "" is none.
type Asset string

// Visibility says who may see and use a tool. Nobody listed means everybody; no
// name that is listed is empty.
type Visibility struct {
	Companies, Teams, Roles []string
}

// Audience is for whom the catalog is shown: the account that is asking.
// Empty parts mean that the account has none.
type Audience struct {
	CompanyID, TeamID, Role string
	// Allowed are the only tools that the role may use, "" for all; Blocked are
	// those it may not.
	Allowed, Blocked IDSet
}

// IDSet is a set of tools' ids. It can be compared.
type IDSet string

// IDs makes a set of sorted ids.
func IDs(ids []string) IDSet { return IDSet(strings.Join(ids, ",")) }

// hasID tells whether an id is in the set: ids have one length and no comma.
func (s IDSet) hasID(id string) bool { return strings.Contains(string(s), id) }

// Sees tells whether the audience may see and use the tool. It is the only
// place that decides this.
func (a Audience) Sees(t *Tool) bool {
	return t.Visibility.Includes(a) && (a.Allowed == "" || a.Allowed.hasID(t.ID)) && !a.Blocked.hasID(t.ID)
}

// Includes tells whether the manifest offers the tool to the audience.
func (v Visibility) Includes(a Audience) bool {
	if !v.isRestricted() {
		return true
	}
	return slices.Contains(v.Companies, a.CompanyID) || slices.Contains(v.Teams, a.TeamID) || slices.Contains(v.Roles, a.Role)
}

// isRestricted tells whether anybody is left out.
func (v Visibility) isRestricted() bool { return len(v.Companies)+len(v.Teams)+len(v.Roles) > 0 }

// Tag sorts tools for people.
type Tag struct {
	ID       string
	Slug     string
	Type     string
	Label    string
	Internal bool // never shown
}

// Kit is a curated shortlist of tools.
type Kit struct {
	ID          string
	Slug        string
	Label       string
	Description string
	Tags        []string
	Default     string // slug of a tool
	Entries     []KitEntry
}

// KitEntry is a tool's place in a kit.
type KitEntry struct {
	Tool   string // slug
	Tags   []string
	Labels []KitLabel
}

// KitLabel is a badge on an entry.
type KitLabel struct{ ID, Icon, Label string }

// Key is a tool's place in lists: the operator's position, then name, then id.
type Key struct {
	Position int64
	Name, ID string
}

// Key gives the tool's place in lists.
func (t *Tool) Key() Key { return Key{t.Position, t.Name, t.ID} }

// Compare orders keys.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Position, o.Position), cmp.Compare(k.Name, o.Name), cmp.Compare(k.ID, o.ID))
}
