package api

import (
	"atelier/internal/board"
	"atelier/internal/file/library"
	"atelier/internal/web/api/wire"
)

func asSummary(b board.Board) wire.BoardSummary {
	return wire.BoardSummary{
		ID:        b.ID,
		Name:      b.Name,
		TeamID:    orNull(b.Team()),
		Revision:  b.Revision,
		Created:   moment(b.Created),
		Updated:   moment(b.Updated),
		Deleted:   momentOrNull(b.Deleted),
		UID:       b.PersonID,
		NodeCount: b.Nodes,
	}
}

func (s *Server) asBoard(b board.Board, nodes []board.Node, next *string, viewerID string) wire.Board {
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
		Nodes:      s.asNodes(nodes, viewerID),
		HasMore:    next != nil,
		NextCursor: next,
	}
}

func (s *Server) asNodes(nodes []board.Node, viewerID string) []wire.Node {
	all := make([]wire.Node, 0, len(nodes))
	for _, n := range nodes {
		all = append(all, s.asNode(n, viewerID))
	}
	return all
}

func (s *Server) asNode(n board.Node, viewerID string) wire.Node {
	one := wire.Node{
		ID:       n.ID,
		Kind:     wire.NodeKind(n.Kind),
		Ref:      orNull(n.Ref),
		Text:     n.Text,
		X:        n.Box.X,
		Y:        n.Box.Y,
		Width:    n.Box.Width,
		Height:   n.Box.Height,
		Z:        n.Z,
		Created:  moment(n.Created),
		Revision: n.Revision,
		Missing:  n.Missing,
	}
	if i := n.Item; i != nil {
		one.Item = &wire.NodeItem{
			Type:            wire.Medium(i.Type),
			MimeType:        i.MimeType,
			URL:             s.Links.URL(i.Kind, i.ID, library.Whole, viewerID, i.Names.Whole),
			ThumbURL:        link(s.Links, i.Kind, i.ID, library.Thumb, viewerID, i.Names),
			Width:           countOrNull(int64(i.Width)),
			Height:          countOrNull(int64(i.Height)),
			DurationSeconds: playing(i.Duration),
			SizeBytes:       i.Size,
		}
	}
	if n.Status != "" {
		status := wire.GenerationStatus(n.Status)
		one.Status = &status
	}
	return one
}

func draftNode(d wire.NodeDraft) board.Draft {
	return board.Draft{
		Kind: board.Kind(d.Kind),
		Ref:  given(d.Ref),
		Text: given(d.Text),
		Z:    d.Z,
		Box:  board.Box{X: given(d.X), Y: given(d.Y), Width: given(d.Width), Height: given(d.Height)},
	}
}

// given is a value that may be left out.
func given[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

func asChange(d wire.NodeChange) board.Change {
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

func asChanges(d wire.NodeChanges) board.Changes {
	c := board.Changes{Delete: given(d.Delete)}
	for _, one := range given(d.Create) {
		c.Create = append(c.Create, draftNode(one))
	}
	for _, u := range given(d.Update) {
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
