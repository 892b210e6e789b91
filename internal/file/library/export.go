package library

import (
	"time"

	"atelier/internal/file/asset"
)

// ExportedResult is a result of a run in a personal account, for the export of
// a person's data.
type ExportedResult struct {
	ID, ResultID string
	RequestID    string
	ToolID       string
	Created      time.Time
	Asset        asset.Asset // only the fields that describe the content are set
	Expired      bool        // the content has been deleted
	Note         string      // the tool's note on the result
	Favorited    bool        // the owner of the account has marked the result as a favorite
	Cursor       ExportCursor
}

// ExportCursor is the position after a page of ExportResults. The zero value
// is the position before the first page.
type ExportCursor struct {
	created time.Time
	runID   string
	place   int64
}

// Favorite records that a person marked a result as a favorite, and when.
type Favorite struct {
	ResultID string
	Created  time.Time
}
