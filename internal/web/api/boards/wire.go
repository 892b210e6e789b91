package boards

import (
	"atelier/internal/board"
	"atelier/internal/file/library"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

func asSummary(b board.Board) wire.BoardSummary {
	return wire.BoardSummary{
		ID:        b.ID,
		Name:      b.Name,
		TeamID:    rest.TextOrNull(b.TeamID()),
		Revision:  b.Revision,
		Created:   rest.Moment(b.Created),
		Updated:   rest.Moment(b.Updated),
		Deleted:   rest.MomentOrNull(b.Deleted),
		UID:       b.PersonID,
		NodeCount: b.Nodes,
	}
}

func (h *Handler) asBoard(b board.Board, nodes []board.Node, next *string, viewerID string) wire.Board {
	one := asSummary(b)
	return wire.Board{
		ID:         one.ID,
		Name:       one.Name,
		TeamID:     one.TeamID,
		Revision:   one.Revision,
		Created:    one.Created,
		Updated:    one.Updated,
		Deleted:    one.Deleted,
		UID:        one.UID,
		NodeCount:  one.NodeCount,
		Nodes:      h.asNodes(nodes, viewerID),
		HasMore:    next != nil,
		NextCursor: next,
	}
}

func (h *Handler) asNodes(nodes []board.Node, viewerID string) []wire.Node {
	all := make([]wire.Node, 0, len(nodes))
	for _, n := range nodes {
		all = append(all, h.asNode(n, viewerID))
	}
	return all
}

// asNode converts a node of a board to its API representation, with URLs
// signed for the viewer.
func (h *Handler) asNode(n board.Node, viewerID string) wire.Node {
	one := wire.Node{
		ID:       n.ID,
		Kind:     wire.NodeKind(n.Kind),
		Ref:      rest.TextOrNull(n.Ref),
		Text:     n.Text,
		X:        n.Box.X,
		Y:        n.Box.Y,
		Width:    n.Box.Width,
		Height:   n.Box.Height,
		Z:        n.Z,
		Created:  rest.Moment(n.Created),
		Revision: n.Revision,
		UID:      rest.TextOrNull(n.PersonID),
		Missing:  n.Missing,
	}
	if i := n.Item; i != nil {
		one.Item = &wire.NodeItem{
			Type:            wire.Medium(i.Type),
			MimeType:        i.MimeType,
			URL:             h.Links.SignURL(i.Kind, i.ID, library.VariantFile, viewerID, i.Names.File),
			ThumbURL:        rest.MediaURL(h.Links, i.Kind, i.ID, library.VariantThumb, viewerID, i.Names),
			PreviewURL:      rest.MediaURL(h.Links, i.Kind, i.ID, library.VariantPreview, viewerID, i.Names),
			Blurhash:        rest.TextOrNull(i.Blurhash),
			Width:           rest.NumberOrNull(int64(i.Width)),
			Height:          rest.NumberOrNull(int64(i.Height)),
			DurationSeconds: rest.SecondsOrNull(i.Duration),
			SizeBytes:       i.Size,
		}
	}
	if n.Status != "" {
		status := wire.GenerationStatus(n.Status)
		one.Status = &status
	}
	return one
}

func toDraft(d wire.NodeDraft) board.Draft {
	return board.Draft{
		Kind: board.Kind(d.Kind),
		Ref:  rest.ValueOrZero(d.Ref),
		Text: rest.ValueOrZero(d.Text),
		Z:    d.Z,
		Box: board.Box{
			X:      rest.ValueOrZero(d.X),
			Y:      rest.ValueOrZero(d.Y),
			Width:  rest.ValueOrZero(d.Width),
			Height: rest.ValueOrZero(d.Height),
		},
	}
}

func toChange(d wire.NodeChange) board.Change {
	return board.Change{
		Ref:    d.Ref,
		Text:   d.Text,
		X:      d.X,
		Y:      d.Y,
		Width:  d.Width,
		Height: d.Height,
		Z:      d.Z,
	}
}

func toChanges(d wire.NodeChanges) board.Changes {
	c := board.Changes{Delete: rest.ValueOrZero(d.Delete)}
	for _, one := range rest.ValueOrZero(d.Create) {
		c.Create = append(c.Create, toDraft(one))
	}
	for _, u := range rest.ValueOrZero(d.Update) {
		c.Update = append(c.Update, board.Update{ID: u.ID, Change: board.Change{
			Ref:    u.Ref,
			Text:   u.Text,
			X:      u.X,
			Y:      u.Y,
			Width:  u.Width,
			Height: u.Height,
			Z:      u.Z,
		}})
	}
	return c
}
