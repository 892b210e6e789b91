package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/openaimap"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
	"atelier/internal/web/api/generations"
	"atelier/internal/web/api/rest"
)

// video is a video of the interface: a run of a tool that makes videos.
type video struct {
	ID          string      `json:"id"`
	Object      string      `json:"object"`
	Model       string      `json:"model"`
	Status      string      `json:"status"`
	Progress    int64       `json:"progress"`
	CreatedAt   int64       `json:"created_at"`
	CompletedAt *int64      `json:"completed_at"`
	ExpiresAt   *int64      `json:"expires_at"`
	Prompt      *string     `json:"prompt"`
	Size        string      `json:"size"`
	Seconds     string      `json:"seconds"`
	RemixedFrom *string     `json:"remixed_from_video_id"`
	Error       *videoError `json:"error"`
}

type videoError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// createVideo serves POST /v1/videos: it creates a run and responds at once.
func (h *Handler) createVideo(w http.ResponseWriter, r *http.Request) error {
	_, m, created, err := h.createRun(w, r, openaimap.Videos, func(*request, *openaimap.Mapping) error { return nil })
	if err != nil {
		return err
	}
	rec, err := h.Runs.GetStatus(r.Context(), rest.PrincipalOf(r).AccountID, created.Run.ID)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asVideo(rec, m.Tool))
}

// findVideo returns the video that the path names, and its tool. The tool is nil
// if it was removed.
func (h *Handler) findVideo(r *http.Request) (generation.Record, *catalog.Tool, error) {
	id := r.PathValue("video_id")
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return generation.Record{}, nil, errNoVideo
	}
	rec, err := h.Runs.GetStatus(r.Context(), rest.PrincipalOf(r).AccountID, id)
	if fault.Is(err, fault.NotFound) {
		return rec, nil, errNoVideo
	}
	if err != nil {
		return rec, nil, err
	}
	version, err := h.Catalog.ToolVersion(r.Context(), rec.ToolHash)
	if err != nil {
		return rec, nil, err
	}
	if version.Output.Type != "VID" || isDeleted(rec) {
		return rec, nil, errNoVideo
	}
	view, err := h.viewOf(r)
	if err != nil {
		return rec, nil, err
	}
	t := *version
	t.Slug = rec.ToolID
	if now, ok := view.ToolByID(rec.ToolID); ok {
		t.Slug = now.Slug
	}
	return rec, &t, nil
}

var errNoVideo = fault.New(fault.NotFound, "There is no such video.").On("video_id")

// isDeleted reports whether all results of a run were deleted.
func isDeleted(rec generation.Record) bool {
	return len(rec.Outputs) > 0 && !slices.ContainsFunc(rec.Outputs, func(o run.Output) bool { return !o.Expired })
}

// getVideo serves GET /v1/videos/{video_id}.
func (h *Handler) getVideo(w http.ResponseWriter, r *http.Request) error {
	rec, t, err := h.findVideo(r)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asVideo(rec, t))
}

// getVideoContent serves GET /v1/videos/{video_id}/content: the file of a video,
// or its first frame.
func (h *Handler) getVideoContent(w http.ResponseWriter, r *http.Request) error {
	rec, _, err := h.findVideo(r)
	if err != nil {
		return err
	}
	if err := checkReady(rec); err != nil {
		return err
	}
	result := rec.Outputs[0]
	switch variant := r.URL.Query().Get("variant"); variant {
	case "", "video":
	case "thumbnail":
		if result.Preview == "" {
			return fault.New(fault.NotFound, "This video has no thumbnail.").On("variant")
		}
		return h.sendThumbnail(w, r, result.Preview)
	default:
		return fault.New(fault.Invalid, "variant must be video or thumbnail.").On("variant")
	}
	w.Header().Set(runHeader, rec.ID)
	return h.sendFile(w, r, rec)
}

// sendThumbnail responds with the picture that is stored under a key.
func (h *Handler) sendThumbnail(w http.ResponseWriter, r *http.Request, key string) error {
	file, info, err := h.Blobs.Open(r.Context(), key, 0, -1)
	if err != nil {
		return err
	}
	defer file.Close()
	return h.sendContent(w, file, generations.PreviewType(key), info.Size)
}

// checkReady returns an error unless the video can be read.
func checkReady(rec generation.Record) error {
	if !rec.State.IsEnded() {
		return &refusal{
			why:   fault.New(fault.PreconditionFailed, "The video is not ready yet."),
			as:    errorKind{code: "video_not_ready", status: http.StatusConflict},
			final: true,
		}
	}
	if err := endError(rec); err != nil {
		return err
	}
	if len(rec.Outputs) == 0 {
		return errNoVideo
	}
	return nil
}

// deleteVideo serves DELETE /v1/videos/{video_id}: it deletes the results of a
// run. A run that has not ended is cancelled.
func (h *Handler) deleteVideo(w http.ResponseWriter, r *http.Request) error {
	rec, _, err := h.findVideo(r)
	if err != nil {
		return err
	}
	who := rest.PrincipalOf(r)
	if !rec.State.IsEnded() {
		if _, _, err := h.Runs.CancelRun(r.Context(), who, rec.ID); err != nil {
			return err
		}
	}
	for _, o := range rec.Outputs {
		if o.Expired {
			continue
		}
		if err := h.Library.DeleteItem(r.Context(), who, rec.LibraryID+":"+o.ID); err != nil {
			return err
		}
	}
	return rest.Reply(w, http.StatusOK, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{rec.ID, "video.deleted", true})
}

const (
	defaultPage = 20
	maxPage     = 100
)

// listVideos serves GET /v1/videos: it lists the runs of tools that make videos,
// newest first.
func (h *Handler) listVideos(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit := defaultPage
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return fault.New(fault.Invalid, fmt.Sprintf("limit must be between 1 and %d.", maxPage)).On("limit")
		}
		limit = n
	}
	if order := query.Get("order"); order != "" && order != "desc" {
		return fault.New(fault.Invalid, "order must be desc.").On("order")
	}
	account := rest.PrincipalOf(r).AccountID
	var after *run.Cursor
	if id := query.Get("after"); id != "" {
		rec, err := h.Runs.GetStatus(r.Context(), account, id)
		if err != nil {
			return fault.New(fault.Invalid, "after is not the id of a video.").On("after")
		}
		after = &run.Cursor{Created: rec.Created, ID: rec.ID}
	}

	view, err := h.viewOf(r)
	if err != nil {
		return err
	}
	list := videoList{Object: "list", Data: []video{}}
	tools := map[string]*catalog.Tool{}
	var records []generation.Record
	for _, t := range view.Tools {
		if t.Output.Type != "VID" {
			continue
		}
		tools[t.ID] = t
		some, err := h.Runs.ListRuns(r.Context(), account, run.Filter{ToolID: t.ID}, after, limit+1)
		if err != nil {
			return err
		}
		records = append(records, some...)
	}
	slices.SortFunc(records, func(a, b generation.Record) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	})
	list.HasMore = len(records) > limit
	for _, rec := range records[:min(limit, len(records))] {
		if !isDeleted(rec) {
			list.Data = append(list.Data, asVideo(rec, tools[rec.ToolID]))
		}
	}
	if n := len(list.Data); n > 0 {
		list.FirstID = &list.Data[0].ID
		list.LastID = &list.Data[n-1].ID
	}
	return rest.Reply(w, http.StatusOK, list)
}

type videoList struct {
	Object  string  `json:"object"`
	Data    []video `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// asVideo converts a run to a video. t is the tool of the run.
func asVideo(rec generation.Record, t *catalog.Tool) video {
	v := video{
		ID:        rec.ID,
		Object:    "video",
		Model:     t.Slug,
		Status:    "queued",
		CreatedAt: rec.Created.Unix(),
	}
	if rec.Prompt != "" {
		v.Prompt = &rec.Prompt
	}
	if rec.State.IsEnded() {
		at := rec.Finished.Unix()
		v.CompletedAt = &at
	}
	v.Size, v.Seconds = requestedSize(rec, t)
	switch rec.State {
	case run.Queued:
	case run.Running:
		v.Status = "in_progress"
		if p := rec.ProgressFraction(); p != nil {
			v.Progress = int64(*p * 100)
		}
	case run.Succeeded:
		v.Status = "completed"
		v.Progress = 100
	case run.Failed:
		v.Status = "failed"
		v.Error = &videoError{rec.ErrorCode, rec.ErrorText}
	default:
		v.Status = "failed"
		v.Error = &videoError{"run_cancelled", "The run was cancelled."}
	}
	if len(rec.Outputs) > 0 {
		o := rec.Outputs[0]
		v.Size = sizeOf(o)
		v.Seconds = strconv.FormatInt(int64(o.Duration.Round(time.Second)/time.Second), 10)
	}
	return v
}

// requestedSize returns the size and the duration in seconds that a run asks
// for, or "" where its tool has no such field.
func requestedSize(rec generation.Record, t *catalog.Tool) (size, seconds string) {
	m, err := openaimap.New(t, openaimap.Videos)
	if err != nil {
		return "", ""
	}
	var inputs map[string]any
	if json.Unmarshal([]byte(rec.Inputs), &inputs) != nil {
		return "", ""
	}
	if value, ok := inputs[m.KeyOf("size")].(map[string]any); ok {
		size = fmt.Sprintf("%vx%v", value["width"], value["height"])
	}
	if value := inputs[m.KeyOf("seconds")]; value != nil {
		seconds = fmt.Sprint(value)
	}
	return size, seconds
}
