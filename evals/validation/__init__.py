"""What every case must keep before it counts. Nothing here runs the product: labels are judged against the corpus."""
