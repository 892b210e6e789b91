// Package execengine is the engine of the setting "exec": it runs a program of
// the operator for each job. The program can be a script, a model's command
// line, or anything else that reads JSON and writes files.
//
// # Input of the program
//
// The program is started with the arguments of the settings, in a folder that
// is created for this job and removed after it. The folder is its working
// directory, its HOME and its TMPDIR. It has two sub-folders: in/ with the media
// inputs and out/, empty, for results. Standard input is one JSON object:
//
//	{
//	  "run_id": "…", "attempt": 1,          together unique for every start of the program
//	  "seed": 7,                            determines everything random
//	  "num_results": 2,                     number of requested results
//	  "output": {"type": "IMG", "mime_types": ["image/png"]},
//	  "with": {…},                          engine.with of the manifest, unchanged
//	  "values": {"prompt": "a fox"},        the inputs; omitted ones are absent
//	  "files": {"picture": [
//	    {"path": "in/picture-1.png", "mime_type": "image/png",
//	     "size": 4711, "width": 640, "height": 480}
//	  ]},
//	  "folder": "/…"                        the working directory
//	}
//
// width and height, in pixels, are absent if a file has none. Values come from
// anyone who may start runs: programs must not pass them to a shell. The environment has
// PATH, HOME, TMPDIR, LANG and the variables of the settings, and no others.
//
// # Output of the program
//
// Lines of standard output that are JSON objects are messages. Each message has
// one of these keys:
//
//	{"progress": 0.5}                completed fraction, from 0 to 1
//	{"preview": "preview.jpg"}       a JPEG or PNG preview of at most 1 MiB
//	{"output": "out/1.png"}          a finished result, which is stored now
//	{"error": {"message": "…", "code": "ENGINE_FAILED", "transient": false}}
//
// File names are relative to the folder. A result that was announced before is
// not stored again. Other lines are ignored, and lines are cut at 64 KiB. While a
// result is being stored, the program may block when it writes more output.
//
// The codes are ENGINE_FAILED, ENGINE_UNAVAILABLE (transient by default) and
// CONTENT_POLICY_VIOLATION. The message is shown to the person who started the
// run, with file paths and URLs removed.
//
// Standard error is discarded, except that its end is logged if the program
// fails.
//
// # End of the program
//
// With exit code 0, files in out/ that were not announced are stored in the
// order of their names, so 01.png comes before 02.png; hidden files and
// sub-folders are ignored, and so are files beyond num_results. With another exit
// code, or after an error message, the run fails with that error or a general
// one. Results that were stored before remain.
//
// When the run is cancelled or out of time, or the program exceeds a limit, it
// is killed with all processes that it started. No process survives it.
//
// # An example
//
// With command: ["/usr/bin/python3", "/opt/tools/paint.py"] in the settings:
//
//	import json, sys
//	from paint import paint # whatever makes pictures
//
//	job = json.load(sys.stdin)
//	for n in range(job["num_results"]):
//	    name = f"out/{n + 1:02}.png"
//	    paint(job["values"]["prompt"], seed=job["seed"] + n).save(name)
//	    print(json.dumps({"output": name}), flush=True)
//	    print(json.dumps({"progress": (n + 1) / job["num_results"]}), flush=True)
package execengine
