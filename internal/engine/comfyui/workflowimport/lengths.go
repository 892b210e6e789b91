package workflowimport

import "slices"

// lengthFinder finds the lengths and frame rates of videos and sound in a
// workflow, and adds fields for them.
type lengthFinder struct {
	workflow *workflow
	form     *form
	numbers  numberFields
	film     bool // a batch of pictures is saved as one file
}

// addLengths adds fields for lengths in frames or seconds and for frame rates.
func (l *lengthFinder) addLengths() {
	frames := []string{"length", "num_frames", "frames", "frame_count", "frames_number", "video_frames", "video_length"}
	seconds := []string{"seconds", "duration", "seconds_total", "duration_seconds", "audio_duration", "length_seconds", "duration_s"}
	for _, id := range l.workflow.order {
		if !l.workflow.live[id] || !l.workflow.makesMedia(id) {
			continue
		}
		for _, name := range l.workflow.inputNames(id) {
			ref := inputRef{id, name}
			s := l.workflow.specOf(ref)
			part := lastPart(name)
			switch {
			case s.kind == "INT" && slices.Contains(frames, part), s.kind == "INT" && part == "batch_size" && l.film && l.isFrameCount(ref):
				l.addLength(ref, numberField{
					base:  "length",
					label: "Length in frames",
					kind:  "NUM",
					spec:  s,
					limit: 300,
				})
			case slices.Contains(numberKinds, s.kind) && slices.Contains(seconds, part):
				l.addLength(ref, numberField{
					base:  "seconds",
					label: "Length in seconds",
					kind:  "NUM",
					spec:  s,
					limit: 300,
				})
			}
		}
	}
	l.workflow.eachInput(intKind, func(_, from inputRef, v any, _ inputSpec) { // inputs that use the length without determining it
		own, _ := floatOf(v)
		if key := l.form.findKey("length", own); key != "" {
			l.form.bindInput(key, from)
		}
	}, frames...)
	l.numbers.addNumber(numberField{
		base:     "fps",
		label:    "Frames per second",
		kind:     "NUM",
		limit:    60,
		advanced: true,
	}, numberKinds, "fps", "frame_rate")
}

// isFrameCount reports whether a batch size is the number of frames of a
// video: the workflow has no other length and the batch has several pictures.
func (l *lengthFinder) isFrameCount(ref inputRef) bool {
	from, ok := l.workflow.followValue(ref)
	if !ok {
		return false
	}
	v, _ := l.workflow.literalOf(from)
	n, ok := floatOf(v)
	return ok && n > 1 && !l.form.usedKeys["length"]
}

// addLength adds a field for a length, or fields for the numbers from which the
// workflow computes it.
func (l *lengthFinder) addLength(ref inputRef, f numberField) {
	if from, ok := l.workflow.followValue(ref); ok {
		l.numbers.addNumberField(f, from)
		return
	}
	l.numbers.addComputed(ref, f.base, f.label, f.limit)
}
