#!/usr/bin/env bash
# Make the pictures of the README from the program itself: bash docs/make_pictures.sh
# MODEL=FOLDER takes another model than the one that opens at first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

model=()
if [[ -n ${MODEL:-} ]]; then
    model=(--model "$MODEL")
fi

take() {
    local picture=docs/pictures/$1.png
    shift
    python main.py "${model[@]}" --steps 12 --snapshot "$picture" "$@"
    python -m docs.shrink_picture "$picture"
}

mkdir -p docs/pictures
take light --theme light --size 1600x1000
take dark --theme dark --size 1600x1000
take projector --theme projector --size 1280x720
take 4k --theme light --size 3840x2160 --scale 2
