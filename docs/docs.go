// Package docs embeds the documentation: Markdown pages, drawings and pictures,
// which internal/web/docs serves at /docs.
package docs

import "embed"

// Files has the pages (*.md), and in folders the files that they show.
//
//go:embed *.md drawings/*.svg sketch/*.png monitoring/alerts.yaml monitoring/dashboard.json
//go:embed studio/board.jpg studio/create.jpg studio/create-phone.jpg studio/library.jpg studio/library-phone.jpg
//go:embed studio/flow.jpg studio/operator.jpg studio/people.jpg studio/reports.jpg studio/you.jpg
var Files embed.FS
