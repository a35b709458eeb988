#!/bin/sh
# Says that it began, then takes longer than anyone will wait.
echo "began $1" >> began.txt
sleep 600
echo "ended $1" >> ended.txt
