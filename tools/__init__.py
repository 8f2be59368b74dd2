"""What a release needs: builds, their checks, kept summaries, licences."""
