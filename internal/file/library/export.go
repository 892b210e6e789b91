package library

import (
	"time"

	"atelier/internal/file/asset"
)

// ExportedResult is a result of a personal account, for the export of a person's data.
type ExportedResult struct {
	ID, ResultID string
	RequestID    string
	ToolID       string
	Created      time.Time
	Asset        asset.Asset // only the fields that describe the bytes
	Expired      bool        // the bytes are removed
	Note         string      // the tool's note on the result
	Favorited    bool        // by the owner of the account
	Cursor       ExportCursor
}

// ExportCursor is the position after a page of ExportResults. The zero value is
// the beginning.
type ExportCursor struct {
	created time.Time
	runID   string
	place   int64
}

// Favorite is a person's mark on a result.
type Favorite struct {
	ResultID string
	Created  time.Time
}
